"""A cube's queries beside the same queries alone: rows and their order, for orderings that are made by hand."""

from __future__ import annotations

from random import Random

import pytest

import quercus as qc
from quercus.backends.base import Limits
from quercus.backends.local.cube import run_cube
from quercus.ir import workload as w
from quercus.plan import Plan
from tests.cube.random_cubes import ABOVE, Drawing, actions, more_special, other_names

BATCH = 100
SEEDS = [*range(0, 400, BATCH), *(pytest.param(i, marks=pytest.mark.slow) for i in range(400, 10_000, BATCH))]


def cuboid(name: str, source: str | None = None, *how: w.Action) -> w.Cuboid:
    return w.Cuboid(name, source, None if source is None else "5.3", how, "", 0.0, 0.0)


def check(plans: dict[str, Plan], cuboids: list[w.Cuboid], events: object, threads: int = 1) -> dict[str, int]:
    """Every query as it is alone; how many matches each has."""
    ordering = w.Ordering("chase", tuple(cuboids))
    found = run_cube(plans, lambda *_: ordering, events, Limits(), threads)
    assert found.ordering == ordering
    assert list(found) == list(plans)
    for name, plan in plans.items():
        alone = plan.run(events)
        assert len(found[name]) == len(alone), (name, plan.text)
        assert found[name].rows() == alone.rows(), (name, plan.text)
        assert found[name].to_arrow().equals(alone.to_arrow()), (name, plan.text)
        assert found.sizes[name] == len(alone.rows())
    return dict(found.sizes)


@pytest.mark.parametrize("first", SEEDS)
def test_what_is_reused_is_what_is_found_alone(first: int) -> None:
    some = 0
    for seed in range(first, first + BATCH):
        drawing = Drawing(seed)
        target = drawing.target()
        chain = [target]
        for _ in range(drawing.r.choice([1, 1, 2])):
            chain.append(drawing.source(chain[-1]))
        names = [f"q{i}" for i in range(len(chain))]
        plans = {n: qc.compile(d.text(), drawing.schema) for n, d in zip(names, chain, strict=True)}
        if any(plan.query.empty for plan in plans.values()):
            continue
        cuboids = [cuboid(names[-1])]
        for special, general in zip(reversed(names[:-1]), reversed(names[1:]), strict=True):
            how = actions(plans[general], plans[special], Random(seed))
            cuboids.append(cuboid(special, general, *how))
        try:
            sizes = check(plans, cuboids, drawing.events)
        except BaseException:
            print(f"seed {seed}", *(f"{n}: {plan.text}" for n, plan in plans.items()), *cuboids, sep="\n")
            raise
        some += sizes["q0"] > 0
    assert some > BATCH / 8


@pytest.mark.parametrize("first", SEEDS)
def test_the_general_comes_from_the_special(first: int) -> None:
    some = deltas = 0
    for seed in range(first, first + BATCH):
        drawing = Drawing(seed)
        general = drawing.target()
        for part in general.parts:
            part.type = drawing.r.choice([*ABOVE.get(part.type, ()), part.type])
        made = more_special(drawing, general)
        if made is None:
            continue
        special, how = made
        if drawing.r.random() < 0.5:
            special, names = other_names(special)
            how = (w.Rename(names), *how)
        plans = {n: qc.compile(d.text(), drawing.schema) for n, d in (("general", general), ("special", special))}
        if any(plan.query.empty for plan in plans.values()):
            continue
        try:
            sizes = check(plans, [cuboid("special"), cuboid("general", "special", *how)], drawing.events)
        except BaseException:
            print(f"seed {seed}", *(f"{n}: {plan.text}" for n, plan in plans.items()), *how, sep="\n")
            raise
        some += sizes["special"] > 0
        deltas += sizes["general"] > sizes["special"]
    assert some > BATCH / 16
    assert deltas > BATCH / 16
