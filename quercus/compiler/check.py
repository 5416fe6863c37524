"""What a pattern may not be:

the laws of docs/semantics.md on negation, Kleene and empty patterns, each with its place.
"""

from __future__ import annotations

from math import prod
from typing import NoReturn

from quercus.errors import QueryError
from quercus.ir import pattern as p
from quercus.ir.span import Span

MAX_COMPONENTS = 100
MAX_AND_KLEENE = 6
MAX_ORDERS = 1_000
MAX_COMBINATION = 10_000


def check_pattern(pattern: p.Pattern, text: str) -> None:
    """Raise `QueryError` at the first part that breaks a law."""
    _Checker(text).check(pattern)


class _Checker:
    def __init__(self, text: str) -> None:
        self.text = text
        self.orders = 1

    def fail(self, code: str, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        raise QueryError(code, message, text=self.text, span=span, hint=hint)

    def check(self, root: p.Pattern) -> None:
        leaves = list(p.leaves(root, negated=True))
        if len(leaves) > MAX_COMPONENTS:
            self.fail(
                "E309",
                f"{len(leaves)} components; the limit is {MAX_COMPONENTS}",
                leaves[MAX_COMPONENTS].span,
                "split the query",
            )
        if isinstance(root, p.Not):
            self.fail("E301", "a negation stands alone", root.span, "put it beside a positive component: SEQ(A, !B)")
        bounds = [x for x in leaves if isinstance(x, p.Kleene) and x.most is not None]
        if prod(x.most or 1 for x in bounds) > MAX_COMBINATION:
            self.fail(
                "E308",
                f"the product of the [n] bounds is beyond {MAX_COMBINATION:,}",
                bounds[-1].span,
                "ask for smaller sets, or use +",
            )
        self.node(root, negated=False)
        self.not_empty(root)

    def node(self, e: p.Pattern, *, negated: bool) -> None:
        match e:
            case p.Leaf():
                return
            case p.Kleene():
                if negated and e.least == 0:
                    self.fail(
                        "E304", "'*' inside a negation", e.span, f"an empty set is always there: write !{e.leaf.type}"
                    )
            case p.Seq() | p.And():
                self.operator(e)
            case p.Or():
                for b in e.branches:
                    if isinstance(b.body, p.Not):
                        self.fail(
                            "E301",
                            "a negation directly in an OR",
                            b.body.span,
                            "put it beside a positive component: SEQ(A, !B)",
                        )
            case p.Not():
                if isinstance(e.body, p.Not):
                    self.fail("E301", "a negation of a negation", e.body.span, "drop both")
                if p.can_be_empty(e.body):
                    self.fail(
                        "E303", "what is negated could bind no event at all", e.body.span, "make one component required"
                    )
        for c in p.parts(e):
            self.node(c, negated=negated or isinstance(e, p.Not))

    def operator(self, e: p.Seq | p.And) -> None:
        name = "SEQ" if isinstance(e, p.Seq) else "AND"
        if all(isinstance(c, p.Not) for c in e.parts):
            self.fail(
                "E302", f"{name} has no positive component", e.span, "a negation needs a positive component beside it"
            )
        if isinstance(e, p.And) and len(e.parts) > 1 and p.has_direct_kleene(e):
            for c in e.parts:
                if isinstance(c, p.Not):
                    self.fail(
                        "E304",
                        "a negation beside a Kleene component in an AND",
                        c.span,
                        "put the negation into a SEQ around the AND",
                    )
            count = len(e.parts)
            if count > MAX_AND_KLEENE:
                self.fail(
                    "E306",
                    f"{count} components beside a Kleene component in an AND; the limit is {MAX_AND_KLEENE}",
                    e.span,
                    "every order counts: use fewer, or nest them",
                )
            for n in range(2, count + 1):
                self.orders *= n
            if self.orders > MAX_ORDERS:
                self.fail(
                    "E306",
                    f"the orders of the ANDs with Kleene components are more than {MAX_ORDERS:,}",
                    e.span,
                    "use fewer components",
                )

    def not_empty(self, root: p.Pattern) -> None:
        """The root, and every branch of a root OR, must bind something."""
        bare = p.unwrapped(root)
        if isinstance(bare, p.Or):
            for b in bare.branches:
                self.not_empty(b.body)
        elif p.can_be_empty(bare):
            self.fail(
                "E303",
                "the pattern could bind no event at all",
                root.span,
                "make one component required: B+ instead of B*",
            )
