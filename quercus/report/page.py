"""The page of a report: its styles, scripts and sections in one file."""

from __future__ import annotations

from quercus.report.gather import Gathered
from quercus.show.assets import read, script
from quercus.show.page import document

STYLES = (("show", "base.css"), ("show", "tree.css"), ("show", "timeline.css"), ("report", "report.css"))
SHARED = ("dom", "query", "clock", "filter", "dragged", "tree", "timeline", "table")
MODULES = (*(("show", f"{name}.js") for name in SHARED), ("report", "report.js"))


def page(report: Gathered) -> str:
    """The whole file."""
    style = "".join(read(part, name) for part, name in STYLES)
    return document(report.title, style, script(*MODULES), read("report", "body.html"), report.data, report.tree)
