"""Streams that adapt: running statistics, a look at them now and then, and another order of binding where it pays.

Nothing is counted when events are pushed. A look counts the events that buffers have got since the last one, and reads
what the levels of the searches have tested and bound.
"""

from __future__ import annotations

from math import inf, log

import numpy as np

from quercus.adapt import Adapt, Switch
from quercus.backends.local.choose import Choice, choose, is_known, planned_model, seen_searches
from quercus.backends.local.incremental import BEGIN, END, Engine
from quercus.backends.local.orders import Orders, stack_order
from quercus.compiler.stream_cost import Search
from quercus.ir import text
from quercus.plan import Plan
from quercus.running_stats import FEW, Running
from quercus.stats import Stats

HALF_LIFE = 4  # windows
AGAIN = 2  # the part of the way to theta after which what was thought of is thought of again
UNSEEN = 0.5  # events that there may be where none was seen
SURE = 100  # candidates that say something of a condition

Tested = tuple[int, int, dict[str, float]]  # search, level, conditions with their share in what the level lets pass
Tally = list[tuple[int, int]]  # of each level: candidates, and how many were bound


class Adapter:
    """Watches the engine of a stream, and says when to search in other orders."""

    def __init__(self, engine: Engine, asked: Adapt, switches: list[Switch]) -> None:
        self.asked, self.plan, self.switches = asked, engine.plan, switches
        self.window = engine.plan.tree.window.size
        self.running = Running(asked.half_life or HALF_LIFE * max(self.window, 1))
        self.seen = 0.0  # how much time, or how many events, all looks have covered
        self.used = self._planned(engine) if is_known(engine.plan) else None  # what the orders in use were chosen by
        self.tried: Stats | None = None  # what the planner saw last
        self.chained: dict[int, bool] = {}
        self.next = engine.course.rows + asked.every  # events pushed at which to look again
        self.clock, self.place = engine.clock, engine.place
        self.switched(engine)

    def _planned(self, engine: Engine) -> Stats:
        model = planned_model(self.plan)
        per = {str(b): model.leaf(s.accepts, s.local)[1] / max(self.window, 1) for b, s in enumerate(engine.specs)}
        return Stats(per)

    # ---- what is seen

    def look(self, engine: Engine) -> Orders | None:
        """The orders to switch to, if any."""
        rows, every = engine.course.rows, self.asked.every
        if self.clock == BEGIN:
            self.clock, self.place = engine.clock, engine.place
        work = engine.matcher.candidates(self.levels) - self.worked
        if work < self.asked.work:
            self.next = rows + every
            return None
        self.next = rows + max(every, engine.matcher.events // 4, 2 * len(engine.keys.values))
        if not self._observe(engine):
            return None
        now, theta = self.running.stats(), self.asked.theta
        drift = inf if self.used is None else self._drift(now, self.used)
        if self.seen < self.window or drift <= theta:
            return None
        if self.tried is not None and self._drift(now, self.tried) <= 1 + (theta - 1) / AGAIN:
            return None
        choice, self.tried = self.choice(engine, now), now
        if self.used is None:
            self.used = now
        if choice.orders == engine.orders or not choice.gain > self.asked.gamma:
            return None
        told = shown(engine, engine.orders), shown(engine, choice.orders)
        self.switches.append(Switch(engine.course.rows, engine.clock, *told, drift, choice.gain))
        self.used = now
        return choice.orders

    def switched(self, engine: Engine) -> None:
        """What the new engine does is counted from here."""
        self.tallies = _tallies(engine)
        self.tests: list[Tested] | None = None
        self.levels: list[tuple[int, int, int]] = []  # where something is looked for: not pivots, nor what is all taken
        for plain, chain, _, _ in engine.searches:
            k = engine.program.flats[plain].levels
            end = len(k) if k[-1].preds or k[-1].negations else len(k) - 1
            self.levels += [(flat, 1, end) for flat in (plain, chain) if flat >= 0]
        self.worked = engine.matcher.candidates(self.levels)  # what they had looked at when all was last observed

    def choice(self, engine: Engine, now: Stats) -> Choice:
        """What the planner would do by now."""
        return choose(self.plan, engine.variants, engine.orders, self._searches(engine, now), self.chained)

    def rates(self, engine: Engine) -> list[tuple[list[str], float]]:
        """Events of each buffer in a window by now, with the variables that they are for."""
        if self.clock not in (BEGIN, END) and engine.clock != END:
            self._observe(engine)
        known = self.running.stats().rates
        return [(engine.names[s], known.get(str(b), 0.0) * self.window) for b, s in enumerate(engine.specs)]

    def _searches(self, engine: Engine, now: Stats) -> list[Search]:
        least = UNSEEN / self.running.span if self.running.span > 0 else 0.0
        rates = [max(now.rates.get(str(b), 0.0), least) for b in range(len(engine.specs))]
        rows = {(s.accepts, s.local): rate * max(self.window, 1) for s, rate in zip(engine.specs, rates, strict=True)}
        keys = len(engine.keys.values) - len(engine.keys.free) if engine.keyed and not engine.own_positions else 1
        return seen_searches(self.plan, engine.variants, rows, now.selectivity, float(keys))

    def _observe(self, engine: Engine) -> bool:
        """Take in what came since the last look; whether time has gone by."""
        tallies = _tallies(engine)
        counts, span = self._counts(engine)
        if span <= 0:
            return False
        gone = engine.clock - self.clock if not engine.count else engine.place - self.place
        self.running.forget(gone - span)
        if self.tests is None:
            self.tests = self._tests(engine)
        passed = self._passed(self.tests, tallies)
        self.running.observe({str(b): n for b, n in enumerate(counts)}, span, engine.place - self.place, passed)
        self.seen += span
        for i, (plain, chain, _, _) in enumerate(engine.searches):
            if chain >= 0:
                self.chained[i] = engine.matcher.tally(chain)[0][0][1] > engine.matcher.tally(plain)[0][0][1]
        self.clock, self.place, self.tallies = engine.clock, engine.place, tallies
        self.worked = engine.matcher.candidates(self.levels)
        return True

    def _counts(self, engine: Engine) -> tuple[list[int], float]:
        """Events of each buffer since the last look, at most those that are kept, and how long that is."""
        m, reach = engine.matcher, engine.reach
        if engine.own_positions:
            held = float(np.minimum(np.array(m.positions(), np.int64), reach).sum())
            part = min(1.0, (engine.place - self.place) / held) if held else 0.0
            return [round(n * part) for n in m.live(BEGIN, reach)], held * part
        if engine.count:
            since = max(self.place, engine.place - reach)
            return m.live(BEGIN, since), float(engine.place - since)
        since = max(self.clock, engine.clock - reach)
        now = m.live(engine.clock, 0)  # more may come at this very time
        return [n - later for n, later in zip(m.live(since, 0), now, strict=True)], float(engine.clock - since)

    def _tests(self, engine: Engine) -> list[Tested]:
        """The levels where conditions alone decide."""
        found = []
        for number, search in enumerate(self._searches(engine, self.running.stats())):
            levels = engine.program.flats[engine.searches[number][0]].levels
            f, v = engine.variants[number]
            names = engine.orders[number] or stack_order(f, v)
            if len(levels) != len(names) + 1:  # sets of n events have n levels
                continue
            mask = 0
            for k, name in enumerate(names, 1):
                i = search.names.index(name)
                tests = {text.scalar(e): -log(min(max(kept, 1e-9), 0.999)) for e, kept in search.tests(mask, i)}
                mask |= 1 << i
                if tests and not levels[k].negations:
                    total = sum(tests.values())
                    found.append((number, k, {e: weight / total for e, weight in tests.items()}))
        return found

    def _passed(self, known: list[Tested], tallies: list[Tally]) -> dict[str, tuple[int, int]]:
        """How many candidates each condition was tested on since the last look, and how many passed."""
        found: dict[str, tuple[int, int]] = {}
        for number, k, tests in known:
            (tested, bound), (before, bound_before) = tallies[number][k], self.tallies[number][k]
            new, part = tested - before, (bound - bound_before) / max(tested - before, 1)
            for e, share in tests.items() if new > 0 else ():
                a, b = found.get(e, (0, 0))
                found[e] = a + new, b + round(new * min(part, 1.0) ** share)
        return found

    def _drift(self, now: Stats, then: Stats) -> float:
        """By how much statistics differ: of events, and of conditions."""
        found = self.running.drift(then)
        for name, kept in now.selectivity.items():
            tested = self.running.tested(name)
            if name in then.selectivity and tested >= SURE:
                ratio = (kept * tested + FEW) / (then.selectivity[name] * tested + FEW)
                found = max(found, ratio, 1 / ratio)
        return found


def explain_stream(plan: Plan, engine: Engine, adapter: Adapter | None, switches: list[Switch]) -> str:
    """A plan and how its stream is searched by now."""
    lines = ["", "Stream", f"  binds {shown(engine, engine.orders)}"]
    if adapter is None:
        asked = "its shape was asked for" if plan.options.shape != "auto" else "it was asked not to"
        other = engine.can_switch
        lines.append(f"  does not adapt: {asked if other else 'there is no other order, or too many searches'}")
    else:
        rates = adapter.rates(engine)
        seen = [f"{', '.join(names)} {rows:.4g}" for names, rows in rates]
        lines.append(f"  in a window: {'; '.join(seen)}" if adapter.seen else "  nothing was seen yet")
        for name, kept in sorted(adapter.running.stats().selectivity.items()):
            lines.append(f"  passed {name}: {kept:.4g}")
    for s in switches:
        lines.append(
            f"  switched at row {s.row}, time {s.clock}: {s.before} -> {s.after}"
            f" (drift {s.drift:.1f}, expected gain {s.gain:.1f})"
        )
    if adapter is not None and not switches:
        lines.append("  no switch so far")
    return plan.explain().rstrip() + "\n" + "\n".join(lines) + "\n"


def shown(engine: Engine, orders: Orders) -> str:
    """The order in which each search binds, its pivot first."""
    found = []
    for (f, v), order in zip(engine.variants, orders, strict=True):
        found.append(" ".join((v.pivot, *(order or stack_order(f, v)))) + ("" if order else " (stack)"))
    return ", ".join(dict.fromkeys(found))


def _tallies(engine: Engine) -> list[Tally]:
    found = []
    for plain, chain, _, _ in engine.searches:
        tally = [(tested, bound) for _, tested, bound in engine.matcher.tally(plain)[0]]
        if chain >= 0:
            more = [(tested, bound) for _, tested, bound in engine.matcher.tally(chain)[0]]
            tally = [(a + c, b + d) for (a, b), (c, d) in zip(tally, more, strict=True)]
        found.append(tally)
    return found
