"""A browser for tests: Debian's Chromium, spoken to by the WebDriver protocol over the standard library alone."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
)
PATIENCE = 10.0  # seconds that anything may take to appear


def missing() -> str | None:
    """What a browser test needs and is not here."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"no {program} here: on Debian, apt-get install chromium chromium-driver"
    return None


class Browser:
    """One headless Chromium. What a page logs as an error is kept: tests look at it."""

    def __init__(self, folder: Path, *, dark: bool = False, size: tuple[int, int] = (1280, 900)) -> None:
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never by a proxy
        log = folder / "chromedriver.log"
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0", f"--log-path={log}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.driver.stdout is not None
        port = next(
            line.rsplit(" ", 1)[1].strip(" .\n") for line in self.driver.stdout if "successfully on port" in line
        )
        self.root = f"http://127.0.0.1:{port}"
        flags = [*FLAGS, f"--user-data-dir={folder / 'profile'}", "--window-size={},{}".format(*size)]
        if dark:
            flags.append("--blink-settings=preferredColorScheme=0")
        asked = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": flags, "binary": shutil.which("chromium")},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": asked}})
        self.root += f"/session/{made['sessionId']}"

    def call(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with self.opener.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as e:
            raise AssertionError(json.load(e)["value"]["message"]) from None

    def close(self) -> None:
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            assert self.driver.stdout is not None
            self.driver.stdout.close()

    # ---- what a test does

    def open(self, url: str) -> None:
        self.call("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: object) -> Any:
        """The body of a function, in the page."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector: str) -> str:
        """What is to be read in the first element."""
        return str(
            self.run(
                "const e = document.querySelector(arguments[0]); return e?.innerText ?? e?.textContent ?? ''", selector
            )
        )

    def count(self, selector: str) -> int:
        return int(self.run("return document.querySelectorAll(arguments[0]).length", selector))

    def wait(self, condition: str, *arguments: object) -> Any:
        """Until an expression is true in the page; what it is then."""
        end = time.monotonic() + PATIENCE
        while not (found := self.run(f"return {condition}", *arguments)):
            assert time.monotonic() < end, f"never true: {condition}\n{self.errors()}"
            time.sleep(0.03)
        return found

    def find(self, selector: str) -> str:
        made = self.call("POST", "/element", {"using": "css selector", "value": selector})
        return str(next(iter(made.values())))

    def click(self, selector: str) -> None:
        self.call("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        """Keys, as a person presses them, into an element."""
        self.call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def act(self, *sources: dict[str, Any]) -> None:
        self.call("POST", "/actions", {"actions": list(sources)})

    def drag(self, selector: str, dx: int, dy: int) -> None:
        """Press in the middle of an element, move, let go."""
        at = {"element-6066-11e4-a52e-4f735466cecf": self.find(selector)}
        steps: list[dict[str, Any]] = [
            {"type": "pointerMove", "origin": at, "x": 0, "y": 0},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "origin": "pointer", "x": dx, "y": dy, "duration": 60},
            {"type": "pointerUp", "button": 0},
        ]
        self.act({"type": "pointer", "id": "mouse", "actions": steps})

    def size(self, width: int, height: int) -> None:
        """The size of the page itself, as of a phone."""
        self.chrome("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def theme(self, name: str) -> None:
        """`light` or `dark`, as the system would say."""
        self.chrome("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def chrome(self, command: str, **arguments: object) -> Any:
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": arguments})

    def picture(self, path: Path) -> None:
        """All of the page."""
        made = self.chrome("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        path.write_bytes(base64.b64decode(made["data"]))

    def errors(self) -> list[str]:
        """What the page complained of since this was asked last."""
        return [e["message"] for e in self.call("POST", "/se/log", {"type": "browser"}) if e["level"] == "SEVERE"]
