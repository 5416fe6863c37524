"""A query, its plan and what it found, as one page that opens anywhere: `quercus.report.write`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quercus.errors import DataError

if TYPE_CHECKING:
    from quercus.backends.base import Limits
    from quercus.plan import Plan

__all__ = ["html", "write"]


def write(
    plan: Plan, events: object, path: str | Path, *, limits: Limits | None = None, title: str | None = None
) -> Path:
    """Run a plan over events, and write one HTML file that needs nothing else: no network, no other file.

    It shows the query, the plan with what each node did, the matches over time, the groups, what is known of the
    events, and the rules that changed the query. The events are read into memory and one thread runs. `limits` stop
    the run (default: a million matches, a minute); the page is written all the same, and says so. The first 2,000
    matches are in it.

    >>> import quercus as qc, tempfile
    >>> plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 3", qc.Schema({}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write(plan, {"ts": [1, 2, 9], "type": ["A", "B", "B"]}, folder + "/report.html")
    ...     path.read_text()[:15]
    '<!DOCTYPE html>'
    """
    page = html(plan, events, limits=limits, title=title)
    path = Path(path)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as e:
        raise DataError(f"cannot write '{path}': {e.strerror}") from None
    return path


def html(plan: Plan, events: object, *, limits: Limits | None = None, title: str | None = None) -> str:
    """The page itself."""
    from quercus.report.gather import gathered
    from quercus.report.page import page

    return page(gathered(plan, events, limits, title))
