"""The studio's server: the standard library's, on the loopback address, for one browser.

Every address begins with a secret of this studio, so that no other page and no other program can ask it anything. Who
comes by another host name (DNS rebinding) or from another page is refused as well. Nothing is served but the files of
the package, the answers of api.py, and the results of a run.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from shutil import copyfileobj
from types import TracebackType
from typing import Any

from quercus.backends.local.dialect import Files
from quercus.errors import QuercusError
from quercus.studio.api import KINDS, Api
from quercus.studio.source import sources

HOST = "127.0.0.1"
MOST_BODY = 2**18  # bytes
PATIENCE = 30  # seconds for a request to arrive
ONCE = 120  # seconds in which the browser must have been opened
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Studio:
    """A studio that runs in the background until it is stopped."""

    def __init__(self, given: str | Path | Files | Sequence[str | Path | Files], *, port: int = 0) -> None:
        self.api = Api(sources(given))
        self.token = secrets.token_urlsafe(32)
        self._once: dict[str, float] = {}
        try:
            self.server = Server((HOST, port), partial(Handler, self))
        except OSError as e:
            self.api.close()
            raise QuercusError(f"cannot listen on port {port}: {e.strerror}") from None
        self.port = self.server.server_address[1]
        self.hosts = {f"{HOST}:{self.port}", f"localhost:{self.port}"}
        self.origins = {f"http://{host}" for host in self.hosts}
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}/"

    def once(self) -> str:
        """An address that leads to the page once: it shows in the list of processes when a browser is started."""
        code = secrets.token_urlsafe(16)
        self._once[code] = time.monotonic() + ONCE
        return f"http://{HOST}:{self.port}/once/{code}"

    def spend(self, code: str) -> bool:
        return self._once.pop(code, 0.0) > time.monotonic()

    def wait(self) -> None:
        """Until it is stopped, or interrupted."""
        while self.thread.is_alive():
            self.thread.join(0.5)

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.api.close()

    def __enter__(self) -> Studio:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False


class Refused(Exception):
    """A request that is not answered, and with which status."""

    def __init__(self, status: int, message: str) -> None:
        self.status, self.message = status, message


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "quercus"
    sys_version = ""
    timeout = PATIENCE

    def __init__(self, studio: Studio, *arguments: Any) -> None:
        self.studio = studio
        super().__init__(*arguments)

    def do_GET(self) -> None:
        self._answered(self._get)

    def do_POST(self) -> None:
        self._answered(self._post)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: an address holds the secret."""

    # ---- who may ask

    def _answered(self, answer: Any) -> None:
        try:
            self._check()
            answer()
        except Refused as e:
            self.close_connection = True
            self._send(e.status, "text/plain", e.message.encode())
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True
        except Exception:
            self.close_connection = True
            self._send(500, "text/plain", b"the studio failed: its terminal says how")
            raise

    def _check(self) -> None:
        if self.headers.get_all("Host", []) not in [[host] for host in self.studio.hosts]:
            raise Refused(403, "this is not the studio's address")
        origin = self.headers.get("Origin")
        if origin is not None and origin not in self.studio.origins:
            raise Refused(403, "another page asked")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise Refused(403, "another page asked: open the address in a tab of its own")

    def _path(self) -> str:
        """What is asked for, behind the secret."""
        path = self.path.partition("?")[0]
        before, token, *rest = [*path.split("/"), ""]
        known = secrets.compare_digest(token.encode(), self.studio.token.encode())
        if before or not known or rest == [""]:
            raise Refused(403, "the address is not complete: open the one that the studio printed")
        return "/".join(rest[:-1])

    # ---- what is answered

    def _get(self) -> None:
        if self.path.startswith("/once/"):
            if not self.studio.spend(self.path.removeprefix("/once/")):
                raise Refused(403, "this address was used: open the one that the studio printed")
            self._send(303, "text/plain", b"", Location=f"/{self.studio.token}/")
            return
        path = self._path()
        if path.startswith("download/"):
            self._download(path.removeprefix("download/"))
            return
        name = path or "studio/index.html"
        if name not in STATIC:
            raise Refused(404, "there is no such page")
        part, _, file = name.partition("/")
        body = files(f"quercus.{part}").joinpath("static", file).read_bytes()
        self._send(200, TYPES[Path(file).suffix] + "; charset=utf-8", body)

    def _post(self) -> None:
        path = self._path()
        call = self.studio.api.calls.get(path.removeprefix("api/")) if path.startswith("api/") else None
        if call is None:
            raise Refused(404, "there is no such request")
        asked = self._body()
        try:
            answer = call(asked)
        except QuercusError as e:
            answer = {"failed": str(e)}
        self._send(200, "application/json", json.dumps(answer, allow_nan=False).encode())

    def _body(self) -> dict[str, Any]:
        if self.headers.get("Content-Type", "").partition(";")[0].strip() != "application/json":
            raise Refused(415, "JSON is expected")
        lengths = self.headers.get_all("Content-Length", [])
        given = lengths[0] if len(lengths) == 1 else ""
        if not (given.isascii() and given.isdigit()) or self.headers.get("Transfer-Encoding"):
            raise Refused(411, "the length of the request is needed")
        if len(given) > 9 or int(given) > MOST_BODY:
            raise Refused(413, f"a request has at most {MOST_BODY:,} bytes")
        try:
            asked = json.loads(self.rfile.read(int(given)))
        except (ValueError, RecursionError):
            raise Refused(400, "this is not JSON") from None
        if not isinstance(asked, dict):
            raise Refused(400, "a JSON object is expected")
        return asked

    def _download(self, name: str) -> None:
        number, _, kind = name.partition(".")
        if not (number.isascii() and number.isdigit()) or len(number) > 9 or kind not in KINDS:
            raise Refused(404, "there is no such file")
        try:
            made = self.studio.api.download(int(number), kind)
        except QuercusError as e:
            raise Refused(409, str(e)) from None
        with made.path.open("rb") as file:
            size = made.path.stat().st_size
            made.path.unlink()
            disposition = f'attachment; filename="{made.name}"'
            self._head(200, made.type, size, {"Content-Disposition": disposition})
            copyfileobj(file, self.wfile)

    def _send(self, status: int, kind: str, body: bytes, **more: str) -> None:
        self._head(status, kind, len(body), more)
        self.wfile.write(body)

    def _head(self, status: int, kind: str, size: int, more: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, **more, "Content-Type": kind, "Content-Length": str(size)}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()


def _static() -> frozenset[str]:
    """The files of the package that a page may have."""
    found = {
        f"{part}/{f.name}" for part in ("studio", "show") for f in files(f"quercus.{part}").joinpath("static").iterdir()
    }
    return frozenset(name for name in found if Path(name).suffix in TYPES)


STATIC = _static()
