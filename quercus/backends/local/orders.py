"""In which order a search binds the components of an alternative.

A search starts from its pivot. A stack binds the last component, the first, then the rest: so matches come out in
order. A tree is climbed from the pivot: at each join, the components on the other side. Any order finds the same.
"""

from __future__ import annotations

from quercus.backends.local.joins import Pair, joined
from quercus.backends.local.release import Variant
from quercus.ir import tree as t
from quercus.ir.flat import Flat

Order = tuple[str, ...]  # of the components after the pivot; none: as a stack binds them
Orders = tuple[Order, ...]  # of each search of a stream


def fixed(f: Flat) -> list[str]:
    """The components that are bound event by event: no open sets."""
    return [b.var for b in f.buffers if not b.kleene or b.most is not None]


def binding_order(f: Flat, variant: Variant | None, *, root: bool, first: str | None = None) -> list[str]:
    """All components, open sets in between: `first`, or what a stream's variant asks for, or as a stack does."""
    order = [b.var for b in f.buffers]
    if variant is not None and variant.order:
        return [variant.pivot, *variant.order]
    if variant is not None and variant.mode == "first":
        first = variant.pivot
    if first is not None:
        return [first, *(v for v in order if v != first)]
    if not root:
        return order
    single = fixed(f)
    last = next((v for v in single if is_last(v, f)), None)
    start = next((v for v in single if all((v, u) in f.before for u in single if u != v)), None)
    pivot = None if variant is None else variant.pivot
    ends = [v for v in dict.fromkeys((pivot, last, start)) if v is not None]
    return [*ends, *(v for v in order if v not in ends)]


def is_last(v: str, f: Flat) -> bool:
    """Whether a component comes after all others but sets."""
    return all((u, v) in f.before for u in fixed(f) if u != v)


def stack_order(f: Flat, variant: Variant) -> Order:
    """What a stack binds after the pivot."""
    single = set(fixed(f))
    return tuple(v for v in binding_order(f, variant, root=True) if v in single and v != variant.pivot)


def tree_order(root: t.Node, f: Flat, variant: Variant) -> Order:
    """What a tree of joins binds after the pivot; none: as a stack does."""
    tree = joined(root, f)
    if tree is None:
        return ()
    climbed = _climbed(tree, variant.pivot)
    found = _leaves(tree) if climbed is None else climbed
    return normal(f, variant, (*found, *(v for v in fixed(f) if v not in found and v != variant.pivot)))


def normal(f: Flat, variant: Variant, order: Order) -> Order:
    """The order, none if it is the stack's."""
    return () if order == stack_order(f, variant) else order


def _climbed(n: Pair | str, pivot: str) -> Order | None:
    """The leaves of a node but the pivot, nearest first; None: the pivot is elsewhere."""
    if isinstance(n, str):
        return () if n == pivot else None
    for near, far in ((n.left, n.right), (n.right, n.left)):
        below = _climbed(near, pivot)
        if below is not None:
            return (*below, *_leaves(far))
    return None


def _leaves(n: Pair | str) -> Order:
    return (n,) if isinstance(n, str) else (*_leaves(n.left), *_leaves(n.right))
