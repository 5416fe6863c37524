"""Pages of one file: nothing is fetched, and no script runs but the page's own, which is named by its digest."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from importlib.metadata import version

from quercus.show.values import embedded, markup


def document(title: str, style: str, code: str, body: str, data: object, tree: str = "") -> str:
    """A page of one file: `data` is for its script, `tree` stands where the body says so."""
    policy = f"default-src 'none'; script-src '{digest(code)}'; style-src 'unsafe-inline'; img-src data:; " + (
        "base-uri 'none'; form-action 'none'"
    )
    parts = {"title": markup(title), "version": markup(version("quercus")), "tree": tree}
    return "".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="referrer" content="no-referrer">\n',
            f"<title>{markup(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n",
            re.sub(r"\{\{(title|version|tree)\}\}", lambda m: parts[m[1]], body),
            f'<script type="application/json" id="data">{embedded(data)}</script>\n',
            f"<script>{code}</script>\n</body>\n</html>\n",
        ]
    )


def digest(code: str) -> str:
    return "sha256-" + b64encode(sha256(code.encode()).digest()).decode()
