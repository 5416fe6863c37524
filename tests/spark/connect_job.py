"""A client of Spark Connect for its test: python -m tests.spark.connect_job REMOTE FOLDER

REMOTE is `local[2]`, for a server started by the client itself, or `sc://host:port`; FOLDER has the files of a stream,
and gets its answer. Prints what it found as JSON.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import quercus as qc
from quercus.backends.spark import session, ship
from quercus.backends.spark.ship import workers
from quercus.errors import NotInstalled
from tests.spark.cluster_job import EVENTS, KEYED, SCHEMA, UNKEYED, event, rows
from tests.spark.stream_files import Files
from tests.spark.stream_job import plan

COUNTED = "PATTERN SEQ(A a, B b, [id]) WITHIN 50 s AGG COUNT(*) AS n GROUPBY a.id"


def main(remote: str, folder: str) -> None:
    with warnings.catch_warnings(record=True) as warned:
        spark = session(config={"spark.remote": remote})
    try:
        found: dict[str, Any] = {"class": f"{type(spark).__module__}.{type(spark).__name__}"}
        found["warned"] = [str(w.message) for w in warned]
        if remote.startswith("sc://"):
            found["missing before"] = sorted({name for w in workers(spark) for name in w.missing})
            ship(spark)
            found["missing after"] = sorted({name for w in workers(spark) for name in w.missing})
        df = spark.createDataFrame([event(i) for i in range(EVENTS)], "ts long, type string, id long").repartition(5)
        found["keyed"] = rows(qc.compile(KEYED, SCHEMA).run(df))
        found["unkeyed"] = rows(qc.compile(UNKEYED, SCHEMA).run(df))
        found["counted"] = sorted([r[0], int(r["n"])] for r in qc.compile(COUNTED, SCHEMA).run(df).collect())
        spark.conf.set("spark.sql.shuffle.partitions", 2)
        files = Files(spark, Path(folder))
        try:
            found["batches"] = len(files.run(plan().run(files.read())))
        except NotInstalled as e:
            found["no stream"] = str(e)
    finally:
        spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
