"""What sieves spare: comparisons that the kernel makes over 64 candidates at once, before it looks at any of them."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from quercus.compiler.constants import Constants
from quercus.ir import expr as x
from quercus.ir import tree as t

BLOCK = 64
FEW = 8.0  # half of what a range must hold to be sifted: `FROM` of quercus/backends/local/sieves.py
ZONED = 2.0 * BLOCK  # candidates of a range whose blocks can be passed over
PASSED = 1 / 16  # of what a block costs, where it is passed over
UP, DOWN, OTHER = 1, -1, 0
DIRECTIONS = {"<": DOWN, "<=": DOWN, ">": UP, ">=": UP, "=": OTHER}


@frozen(eq=False)
class Sieve:
    """A comparison of a component's own value with what others are bound to; `against` are these."""

    own: x.Expr
    direction: int
    against: int


def sieves_of(e: x.Expr, leaves: dict[str, int]) -> dict[int, Sieve]:
    """The components, by the variables of their leaves, that a condition sifts."""
    if not isinstance(e, x.Compare) or e.op not in DIRECTIONS:
        return {}
    found = {}
    left, right = x.variables(e.left), x.variables(e.right)
    for own, names, others, sign in ((e.left, left, right, 1), (e.right, right, left, -1)):
        if len(names) == 1 and not names & others and others and names <= leaves.keys() and others <= leaves.keys():
            (name,) = names
            found[leaves[name]] = Sieve(own, sign * DIRECTIONS[e.op], sum(1 << leaves[v] for v in others))
    return found


def single_leaves(nodes: Iterable[t.Node]) -> dict[str, int]:
    """The numbers of components that are leaves of single events, by variable."""
    return {n.var: i for i, n in enumerate(nodes) if isinstance(n, t.Buffer) and not n.kleene}


def share(size: float) -> float:
    """The part of candidates that are in ranges large enough, if ranges are of any size up to twice the usual one."""
    return 1.0 - (FEW / size) ** 2 if size > FEW else 0.0


def sifted(c: Constants, ranges: float, candidates: float, kept: list[float]) -> float:
    """What it costs to sift: each range is begun, and its blocks are compared, or passed over by their zones."""
    size = candidates / ranges if ranges > 0 else 0.0
    blocks = candidates / BLOCK
    if size >= ZONED:
        live = min(1.0, BLOCK * min(kept))
        blocks *= live + (1.0 - live) * PASSED
    return len(kept) * (ranges * c.sift + blocks * c.block)


def implied(i: int, bound: int, tests: list[dict[int, Sieve]]) -> tuple[int, int] | None:
    """What sieves of a later component say of this one: a < b < c, with c bound and b not, sifts a by a < c.

    The places of the two conditions, each given by what it sifts. Once both can be tested, they say it
    themselves.
    """
    for near, near_sieves in enumerate(tests):
        for j, a in near_sieves.items():
            if j == i or bound >> j & 1 or a.against != 1 << i:
                continue
            for far, far_sieves in enumerate(tests):
                b = far_sieves.get(j)
                if b is None or far == near or b.against & ~bound or b.own != a.own:
                    continue
                if a.direction * b.direction < 0:
                    return near, far
    return None
