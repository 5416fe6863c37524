"""One run of a query, in a process of its own, so that it can be ended at any moment.

It reads requests as lines of JSON, and answers each with a line: first `run`, then pages of what was found and files to
download. It ends when its input does.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np
import pyarrow as pa

from quercus.backends.base import Limits
from quercus.backends.local.dialect import Files
from quercus.compiler import compile
from quercus.errors import QuercusError
from quercus.report.gather import Gathered, gathered
from quercus.report.page import page as report_page
from quercus.result import Matches
from quercus.schema import Schema
from quercus.show.values import rows
from quercus.stats import Stats


class Worker:
    """What one run found, and what can be asked of it."""

    def __init__(self) -> None:
        self.made: Gathered | None = None

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            match asked["do"]:
                case "run":
                    return self.run(asked)
                case "page":
                    return self.page(asked["from"], asked["count"])
                case "save":
                    return self.save(asked["path"], asked["kind"])
                case other:
                    return {"failed": f"no request '{other}'"}
        except QuercusError as e:
            return {"failed": str(e)}
        except MemoryError:
            return {"failed": "there is not enough memory for this run"}

    def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        stats = None if asked["stats"] is None else Stats.from_json(asked["stats"])
        plan = compile(
            asked["query"], Schema.from_dict(asked["schema"]), stats=stats, shape=asked["shape"], nested=asked["nested"]
        )
        events = Files(*asked["events"].pop("paths"), **asked["events"])
        self.made = gathered(plan, events, Limits(**asked["limits"]), "Quercus report")
        data = self.made.data
        kept = ("summary", "nodes", "facts", "run", "matches", "groups", "warnings", "why")
        head = self.page(0, 20)
        return {"tree": self.made.tree, "table": head, **{name: data[name] for name in kept}}

    def page(self, first: int, count: int) -> dict[str, Any]:
        """Some rows of the answer."""
        found = None if self.made is None else self.made.found
        if found is None:
            return {"columns": [], "rows": [], "total": 0}
        total = len(found)
        return {**rows(_part(found, first, count)), "total": total}

    def save(self, path: str, kind: str) -> dict[str, Any]:
        """Write the answer, or the report, where the studio hands it out."""
        if self.made is None or (self.made.found is None and kind != "html"):
            return {"failed": "there is nothing to save"}
        if kind == "html":
            with open(path, "w", encoding="utf-8") as out:
                out.write(report_page(self.made))
        elif self.made.found is not None:
            self.made.found.write(path)
        return {"saved": path}


def _part(found: Matches, first: int, count: int) -> pa.Table:
    if found.query.aggregates:
        return found.to_arrow().slice(first, count)
    answer = found.answer
    some = np.arange(min(first, len(answer)), min(first + count, len(answer)), dtype=np.int64)
    return Matches(answer.table, found.schema, found.query, [b.take(some) for b in answer.bound.values()]).to_arrow()


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else prints does not get between the answers
    worker = Worker()
    for line in sys.stdin:
        out.write(json.dumps(worker.answer(json.loads(line)), allow_nan=False) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
