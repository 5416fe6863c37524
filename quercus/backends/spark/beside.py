"""Two texts side by side, in columns of a stated width; lines that are too long for theirs go on in the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap

BETWEEN = " │ "
NARROW = 100  # from which on there are two columns
_BRANCHES = str.maketrans("├└─+-", "│    ")  # how a line of a tree goes on


def beside(left: Sequence[str], right: Sequence[str], width: int) -> str:
    """The left column is as wide as it must be, but not wider than the right. Below each other in a narrow text.

    >>> print(beside(["shape  stack", "├─ buffer a"], ["Exchange", "  +- Filter"], 100).replace("│", "|"))
    shape  stack | Exchange
    ├─ buffer a  |   +- Filter
    >>> print(beside(["above"], ["below"], 80))
    above
    <BLANKLINE>
    below
    """
    if width < NARROW:
        return "\n".join([*left, "", *right])
    most = (width - len(BETWEEN)) // 2
    own = [part for line in left for part in folded(line, most)]
    room = max(map(len, own), default=0)
    other = [part for line in right for part in folded(line, width - len(BETWEEN) - room)]
    rows = zip_longest(own, other, fillvalue="")
    return "\n".join(f"{a:<{room}}{BETWEEN}{b}".rstrip() for a, b in rows)


def folded(line: str, width: int) -> Iterator[str]:
    """A line in pieces of this width; what goes on stands a little to the right, and branches of a tree go on too.

    >>> list(folded("  ├─ buffer a: Trade where a.price > 10", 26))
    ['  ├─ buffer a: Trade where', '  │    a.price > 10']
    """
    if len(line) <= width:
        yield line
        return
    start = line[: len(line) - len(line.lstrip(" │├└─+-"))]
    yield from wrap(
        line[len(start) :],
        width,
        initial_indent=start,
        subsequent_indent=start.translate(_BRANCHES) + "  ",
        break_on_hyphens=False,
    )
