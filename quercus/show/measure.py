"""How wide text will be, near enough to draw a box around it: fonts differ, and there is none here to ask."""

from __future__ import annotations

NARROW, WIDE = set("ijl.,:;|!'()[]{} tfI/"), set("mwMW@%&")


def width_of(text: str, size: float) -> float:
    """Pixels of a line in a sans-serif font of that size."""
    return size * sum(_em(c) for c in text)


def _em(c: str) -> float:
    if c in NARROW:
        return 0.34
    if c in WIDE:
        return 0.9
    if ord(c) > 0x2E7F:  # East Asian, and pictures
        return 1.05
    return 0.7 if c.isupper() else 0.58


def wrapped(text: str, width: float, size: float) -> list[str]:
    """Lines of at most that many pixels, broken at spaces; a word that is longer is cut."""
    if not text:
        return []
    out, current = [], ""
    for word in text.split(" "):
        word = cut(word, width, size)
        together = f"{current} {word}" if current else word
        if current and width_of(together, size) > width:
            out.append(current)
            current = word
        else:
            current = together
    return [*out, current]


def cut(text: str, width: float, size: float) -> str:
    """The text, or as much of it as fits."""
    if width_of(text, size) <= width:
        return text
    while text and width_of(text + "…", size) > width:
        text = text[:-1]
    return text + "…"
