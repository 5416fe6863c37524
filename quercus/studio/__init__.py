"""A local page to write queries, see their plans and browse what they find: `quercus.studio.serve`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quercus.backends.local.dialect import Files

__all__ = ["serve"]


def serve(
    files: str | Path | Files | Sequence[str | Path | Files], *, port: int = 0, open_browser: bool = True
) -> None:
    """Serve the studio over some files of events, until Ctrl-C.

    It listens on 127.0.0.1 only, at `port` or any that is free, and its address holds a secret: whoever knows it can
    run queries over these files, and read no others. `open_browser`: show it in the browser of this desktop.
    """
    import webbrowser
    from contextlib import suppress

    from quercus.studio.server import Studio

    with suppress(KeyboardInterrupt), Studio(files, port=port) as studio:
        print(f"Quercus studio: {studio.url}\nCtrl-C stops it.", flush=True)
        if open_browser:
            webbrowser.open(studio.once())
        studio.wait()
    print("\nstopped")
