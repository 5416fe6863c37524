"""The tables of the documents, each from the results of one benchmark."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from benchmarks.record import read
from benchmarks.tables import engine, nested, others
from benchmarks.tables.markdown import Document


@frozen
class Table:
    """What is made from a result: Markdown, or None where the result has not got it."""

    result: str
    made: Callable[[Document], str | None]

    def __call__(self) -> str | None:
        """From the last result, if there is one."""
        document = read(self.result)
        return None if document is None else self.made(document)


TABLES = {
    "engine": Table("engine", engine.beside),
    "flink": Table("flink", engine.flink),
    "summary": Table("engine", engine.summary),
    "stages": Table("engine", engine.stages),
    "growth-events": Table("engine", engine.events),
    "growth-windows": Table("engine", engine.windows),
    "growth-length": Table("engine", engine.length),
    "growth-sets": Table("engine", engine.sets),
    "counted": Table("engine", engine.counted),
    "aggregates": Table("engine", engine.aggregates),
    "sifted": Table("engine", engine.sifted),
    "negations": Table("engine", engine.negated),
    "streamed": Table("engine", engine.streamed),
    "pushes": Table("engine", engine.pushes),
    "threads": Table("engine", engine.threads),
    "small": Table("engine", engine.small),
    "adaptive": Table("adaptive", engine.adapting),
    "views-windows": Table("views", nested.windows),
    "views-work": Table("views", nested.work),
    "views-plain": Table("views", nested.plain),
    "views-positive": Table("views", nested.positive),
    "views-negated": Table("views", nested.negated),
    "views-tests": Table("views", nested.tests),
    "views-long": Table("views", nested.longer),
    "views-cached": Table("views", nested.cached),
    "views-correlated": Table("views", nested.correlated),
    "views-memory": Table("views", nested.memory),
    "faem": Table("faem", others.chosen),
    "random": Table("random", others.chosen),
    "windows-example": Table("windows", others.example),
    "windows-open": Table("windows", others.opened),
    "windows-shared": Table("windows", others.shared),
    "cube": Table("cube", others.cube),
    "cube-bars": Table("cube-bars", others.cube_bars),
    "calibrate": Table("calibrate", others.calibrated),
    "why": Table("why", others.why),
    "spark": Table("spark-keyed", others.spark_batch),
    "spark-joins": Table("spark-joins", others.spark_joins),
    "spark-streams": Table("spark-streams", others.spark_streams),
}
