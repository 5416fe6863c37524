"""The local backend: one machine, Cython kernels over Arrow columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quercus.backends.base import Limits
from quercus.errors import DataError
from quercus.ir import expr as x
from quercus.ir import text
from quercus.ir import tree as t

if TYPE_CHECKING:
    from quercus.plan import Plan
    from quercus.result import Matches


class LocalBackend:
    """Runs a plan in this process."""

    name = "local"

    def supports(self, plan: Plan) -> str | None:
        """Every plan runs here, but for text functions of a group function in a condition."""
        tests = (e for n in t.walk(plan.tree.root) if isinstance(n, t.Test) for c in n.where for e in x.walk(c.expr))
        for e in tests:
            if isinstance(e, x.Call) and e.name in ("lower", "upper", "length") and x.has_group_call(e):
                return f"{text.scalar(e)}: text functions of a group function do not run"
        return None

    def run(self, plan: Plan, events: Any, *, threads: int | None = None, limits: Limits | None = None) -> Matches:
        """All matches of the plan over a stream that is at hand as a whole;

        on one thread, unless more are asked for.
        """
        from quercus.backends.local.run import run_plan

        if threads is not None and (type(threads) is not int or threads < 1):
            raise DataError(f"threads={threads!r}: give a whole number from 1 up, or None")
        return run_plan(plan, events, limits or Limits(), threads or 1)
