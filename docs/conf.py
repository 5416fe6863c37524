"""The documents as a site: `make docs` builds it into build/docs, and any warning is an error."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING

from pygments.lexers import TextLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

project = "Quercus"
author = "The Quercus authors"
copyright = author
version = release = version_of("quercus")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["images"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"

html_theme = "furo"
html_title = "Quercus"
html_static_path: list[str] = []
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#3f6212", "color-brand-content": "#3f6212"},
    "dark_css_variables": {"color-brand-primary": "#a3c76b", "color-brand-content": "#a3c76b"},
}

# Documents beside docs/ that are pages of the site, and the page that includes each.
PAGES = {"ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md"}
OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)?([\w./-]+?)(#[\w-]+)?\)")


def read(_: Sphinx, page: str, content: list[str]) -> None:
    """Links that lead out of docs/ in the repository: to a page of the site where there is one, else to no page."""

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if target in PAGES:
            return f"[{text}]({PAGES[target]}{anchor})"
        if target.startswith("docs/"):
            return f"[{text}]({target.removeprefix('docs/')}{anchor})"
        inside = (HERE / page).parent / target
        return found[0] if inside.exists() else f"{text} (`{target}`)"

    for name, where in PAGES.items():
        if page == where.removesuffix(".md"):
            content[0] = (HERE.parent / name).read_text(encoding="utf-8")
    content[0] = OUTSIDE.sub(link, content[0])


def setup(app: Sphinx) -> None:
    app.add_lexer("case", TextLexer)
    app.connect("source-read", read)
