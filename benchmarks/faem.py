"""FAEM's experiments on the music stream, in every shape: `python -m benchmarks.faem [--quick]`.

Figures 7 to 11 of the paper: order of joins, population of events, selectivity, length of the window, and place of the
Kleene component. The stream has the paper's numbers of events of each track among 1,000,000.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from attrs import evolve, frozen

from benchmarks import record, shapes
from benchmarks.shapes import SHAPES, Compared, compare, held, nearness, ratios, summary, table
from benchmarks.streams import stream
from benchmarks.workloads import SCHEMA

A, B, C, D = "t147073", "t56437", "t189820", "t531386"
TITLES = {
    7: "Order of joins",
    8: "Population of events",
    9: "Selectivity of a condition",
    10: "Length of the window",
    11: "Place and kind of the Kleene component",
}


@frozen
class Experiment:
    figure: int
    label: str
    query: str


def seq(*parts: str, where: str = "", within: int = 5_000) -> str:
    named = [f"{part} {name}" for part, name in zip(parts, "abcd", strict=False)]
    return f"PATTERN SEQ({', '.join(named)}{where and ', ' + where}) WITHIN {within} EVENTS"


def experiments() -> Iterator[Experiment]:
    yield Experiment(7, "A;B;C;D+", seq(A, B, C, f"{D}+"))
    yield Experiment(7, "A+;B;C;D", seq(f"{A}+", B, C, D))
    yield Experiment(7, "A;B;C;D", seq(A, B, C, D))
    yield Experiment(8, "D;C;B;A+", seq(D, C, B, f"{A}+"))
    yield Experiment(8, "D+;C;B;A", seq(f"{D}+", C, B, A))
    yield Experiment(8, "A+;B;C;D", seq(f"{A}+", B, C, D))
    yield Experiment(8, "A;B;C", seq(A, B, C))
    for kept in (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2):
        yield Experiment(9, f"A,B 1/{1 / kept:.0f}", seq(A, B, C, f"{D}+", where=f"a.value < b.value * {2 * kept}"))
    for kept in (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2):
        yield Experiment(9, f"C,D 1/{1 / kept:.0f}", seq(A, B, C, f"{D}+", where=f"c.value < d.value * {2 * kept}"))
    for within in (1_000, 2_500, 5_000, 7_500, 10_000):
        yield Experiment(10, f"D+ {within:,}", seq(A, B, C, f"{D}+", within=within))
    for within in (1_000, 2_500, 5_000, 7_500, 10_000):
        yield Experiment(10, f"A+ {within:,}", seq(f"{A}+", B, C, D, within=within))
    for within in (1_000, 2_500, 5_000, 7_500, 10_000):
        yield Experiment(10, f"none {within:,}", seq(A, B, C, D, within=within))
    for sign in ("[3]", "+", "*"):
        for place in range(4):
            parts = [t + sign if i == place else t for i, t in enumerate((A, B, C, D))]
            yield Experiment(11, f"{sign} at {place + 1}", seq(*parts))


def plot(found: list[tuple[Experiment, Compared]], folder: Path) -> None:
    """A picture for each figure: millions of events a second, and bytes of internal buffers, by shape."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "quercus"
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    colours = dict(zip(SHAPES, ("#4c78a8", "#72b7b2", "#f2a541", "#b279a2", "#54a24b"), strict=True))
    for figure, title in TITLES.items():
        rows = [(e, c) for e, c in found if e.figure == figure]
        if not rows:
            continue
        width = max(6.5, 0.62 * len(rows) + 1.5)
        drawn, (above, under) = plt.subplots(2, 1, figsize=(width, 5.2), sharex=True)
        for k, shape in enumerate(SHAPES):
            places = [i + (k - 2) * 0.16 for i in range(len(rows))]
            speed = [c.events / c.seconds[shape] / 1e6 for _, c in rows]
            above.bar(places, speed, 0.15, color=colours[shape], label=shape)
            under.bar(places, [c.bytes[shape] / 1e6 for _, c in rows], 0.15, color=colours[shape])
        at = range(len(rows))
        above.plot(at, [c.events / c.seconds["auto"] / 1e6 for _, c in rows], "k_", ms=22, mew=2, label="chosen")
        under.plot(at, [c.bytes["auto"] / 1e6 for _, c in rows], "k_", ms=22, mew=2)
        above.set_ylabel("million events a second")
        above.set_title(f"FAEM, Fig. {figure}: {title}")
        under.set_ylabel("MB of internal buffers")
        under.set_xticks(
            list(at),
            [e.label for e, _ in rows],
            rotation=35 if len(rows) > 6 else 0,
            ha="right" if len(rows) > 6 else "center",
        )
        if max(max(c.bytes.values()) for _, c in rows) > 50e6:
            under.set_yscale("symlog", linthresh=0.1)
        drawn.legend(*above.get_legend_handles_labels(), loc="outside right upper", frameon=False)
        drawn.tight_layout(rect=(0, 0, 1 - 1.15 / width, 1))
        drawn.savefig(folder / f"faem-{figure}.svg", metadata={"Date": None})
        plt.close(drawn)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    record.options(parser)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for each query")
    parser.add_argument("--figure", type=int, action="append", help="only some figures; nothing is kept without --out")
    asked = parser.parse_args()
    asked.quick |= asked.figure is not None
    music = stream("music1m")
    found: list[tuple[Experiment, Compared]] = []
    for e in experiments():
        if asked.figure is None or e.figure in asked.figure:
            one = compare(e.query, SCHEMA, music, *((0.1, 1) if asked.quick else (asked.budget,)))
            found.append((e, evolve(one, bytes=held(e.query, SCHEMA, music))))
            print(f"Fig. {e.figure:<3}{e.label}", flush=True)
            print(table([found[-1][1]]).splitlines()[1], flush=True)
    print(summary(c for _, c in found))
    near = nearness(c for _, c in found)
    rows = shapes.kept(c for _, c in found)
    for (e, _), row in zip(found, rows, strict=True):
        row |= {"figure": e.figure, "label": e.label}
    record.keep(asked, "faem", {"summary": near, "queries": rows}, ratios(near))
    if (folder := record.images(asked)) is not None:
        plot(found, folder)


if __name__ == "__main__":
    main()
