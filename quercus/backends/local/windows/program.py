"""The conditions of a pattern window as programs of the matcher's machine: slots here, first, prev and window."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from quercus.backends.local.code import Code
from quercus.backends.local.specs import ColumnSpec, Name, Program
from quercus.backends.local.windows.conditions import knowing
from quercus.backends.local.windows.plan import WindowPlan
from quercus.ir import expr as x
from quercus.ir.window import FIRST, HERE, PREV, WINDOW
from quercus.schema import Schema

_NAMES = {var: Name(var, int(var == WINDOW), (i,), None, None) for i, var in enumerate((HERE, FIRST, PREV, WINDOW))}
_COUNTS = {"iter": 0, "num": 1}  # columns of the machine; those that are loaded follow


@frozen(eq=False)
class Programs:
    """`preds`: for each window where the code of termination, iteration, filter and bound is; None: nothing to ask.

    They have one program, so that what several of them read is there once.
    """

    program: Program
    preds: tuple[tuple[tuple[int, int] | None, ...], ...]

    @property
    def columns(self) -> list[ColumnSpec]:
        """What is loaded."""
        return self.program.columns[len(_COUNTS) :]


Preds = tuple[tuple[int, int] | None, ...]
NOTHING: Preds = (None, None, None, None)


def programs_of(plans: Sequence[WindowPlan], schema: Schema, own: Sequence[bool | None] = ()) -> Programs:
    """`own`: whether only windows of a tuple's own key are asked, so that the key's comparisons need not be made; None:
    none is asked.
    """
    program = Program(False, False, 0)
    program.columns += [ColumnSpec(1, x.Column(WINDOW, attr, "int64")) for attr in _COUNTS]
    code = _WindowCode(program, schema)
    preds: list[Preds] = []
    for p, alone in zip(plans, own or [False] * len(plans), strict=True):
        if alone is None:
            preds.append(NOTHING)
            continue
        bounds = () if p.bound == x.TRUE else (p.bound,)
        truth = dict.fromkeys(p.keys, x.TRUE) if alone else {}
        asked = (p.window.termination, p.rest, _counted(p.window.filter))
        conditions = (*(knowing(e, truth) for e in asked), *bounds)
        found = [program.preds[code.predicate(e, _NAMES, {}, over=-1)][:2] for e in conditions]
        preds.append((*found, None)[:4])
    return Programs(program, tuple(preds))


def _counted(e: x.Expr) -> x.Expr:
    """The filter condition, which is asked when ITER() has counted the tuple at hand (Algorithm 1, lines 11 and 12)."""
    if isinstance(e, x.Column) and (e.var, e.attr) == (WINDOW, "iter"):
        return x.Arithmetic("+", e, x.Const(1, "int64"), "int64")
    return x.with_children(e, tuple(_counted(c) for c in x.children(e)))


class _WindowCode(Code):
    """A window's counts are no columns that could be computed beforehand."""

    def _is_column(self, e: x.Expr) -> bool:
        return super()._is_column(e) and (isinstance(e, x.Column) or WINDOW not in x.variables(e))

    def column(self, e: x.Expr, n: Name) -> int:
        return _COUNTS[e.attr] if isinstance(e, x.Column) and e.var == WINDOW else super().column(e, n)
