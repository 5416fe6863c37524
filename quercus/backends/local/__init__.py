"""The local backend: one machine, Cython kernels over Arrow columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quercus.backends.base import Limits, threads_of

if TYPE_CHECKING:
    from quercus.plan import Plan
    from quercus.result import Matches


class LocalBackend:
    """Runs a plan in this process."""

    name = "local"

    def supports(self, plan: Plan) -> str | None:
        """Every plan runs here."""
        return None

    def run(self, plan: Plan, events: Any, *, threads: int | None = None, limits: Limits | None = None) -> Matches:
        """All matches of the plan over a stream that is at hand as a whole;

        on one thread, unless more are asked for.
        """
        from quercus.backends.local.run import run_plan

        return run_plan(plan, events, Limits.of(limits), threads_of(threads))
