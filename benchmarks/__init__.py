"""How fast the local engine is, beside DuckDB and Polars: `make bench`, or `python -m benchmarks.table [--quick]`."""

import os

os.environ["POLARS_MAX_THREADS"] = "1"  # read once, when Polars is first imported
