"""The rewrite rules, one law per file, in the order they run.

A rule on a pattern node returns the new node, a rule on the query the new query, and both return None for 'no
change'. The order has reasons, given beside each rule; the whole list runs again until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from attrs import frozen

from quercus.compiler.rules.and_kleene_orders import and_kleene_orders
from quercus.compiler.rules.contradictions import contradictions
from quercus.compiler.rules.distribute_or import distribute_or
from quercus.compiler.rules.drop_repeated import drop_repeated
from quercus.compiler.rules.drop_single import drop_single
from quercus.compiler.rules.drop_tautologies import drop_tautologies
from quercus.compiler.rules.equality_closure import equality_closure
from quercus.compiler.rules.flatten_and import flatten_and
from quercus.compiler.rules.flatten_or import flatten_or
from quercus.compiler.rules.flatten_seq import flatten_seq
from quercus.compiler.rules.fold_constants import fold_constants
from quercus.compiler.rules.mark_delayed import mark_delayed
from quercus.compiler.rules.mark_exists import mark_exists
from quercus.compiler.rules.mark_postponed import mark_postponed
from quercus.compiler.rules.normal_comparison import normal_comparison
from quercus.compiler.rules.not_kleene import not_kleene
from quercus.compiler.rules.not_or import not_or
from quercus.compiler.rules.partition_key import partition_key
from quercus.compiler.rules.prune_columns import prune_columns
from quercus.compiler.rules.split_conjuncts import split_conjuncts
from quercus.compiler.rules.tighten_windows import tighten_windows
from quercus.ir import pattern as p


@frozen
class Rule:
    """A law with its name, what it applies to, and why it stands where it stands.

    `offered` rules change nothing by themselves: the planner tries them and keeps what is cheaper. `finding` rules
    write down what is true of the final query; they run once, after all others.
    """

    apply: Callable[[p.Pattern], p.Pattern | None] | Callable[[p.Query], p.Query | None]
    on: Literal["node", "query"]
    reason: str
    kind: Literal["rewrite", "offered", "finding"] = "rewrite"

    @property
    def name(self) -> str:
        return self.apply.__name__

    @property
    def law(self) -> str:
        """The law as before -> after: the first sentence of the rule's docstring."""
        return (self.apply.__doc__ or "").strip().partition("\n")[0]


RULES: tuple[Rule, ...] = (
    Rule(drop_single, "query", "first, so that 'directly under' means what the text means"),
    Rule(and_kleene_orders, "node", "before anything that moves components in or out of an AND"),
    Rule(tighten_windows, "query", "an operator that loses its window can be flattened"),
    Rule(flatten_seq, "node", "a longer SEQ has more shapes to choose from"),
    Rule(flatten_and, "node", "the same for AND, where no Kleene or negation is near"),
    Rule(flatten_or, "node", "one union instead of two"),
    Rule(not_or, "node", "two simple negations instead of a union"),
    Rule(not_kleene, "node", "after the orders of AND are taken"),
    Rule(fold_constants, "query", "so that comparisons with constants are seen as such"),
    Rule(normal_comparison, "query", "equal conditions look equal from here on"),
    Rule(split_conjuncts, "query", "after De Morgan has made conjunctions of negated disjunctions"),
    Rule(drop_tautologies, "query", "what folding has made true"),
    Rule(equality_closure, "query", "needs the normal form; gives joins, leaves and the key more to work with"),
    Rule(drop_repeated, "query", "what closure found that was written already"),
    Rule(contradictions, "query", "after closure has spread the constants"),
    Rule(distribute_or, "node", "the planner compares both forms", "offered"),
    Rule(partition_key, "query", "from the closed equalities", "finding"),
    Rule(mark_exists, "query", "for the choice of a nested strategy", "finding"),
    Rule(mark_delayed, "query", "for the place of a negation in the tree", "finding"),
    Rule(mark_postponed, "query", "for the time at which results may leave", "finding"),
    Rule(prune_columns, "query", "last: what is still named is read", "finding"),
)
BY_NAME = {r.name: r for r in RULES}
