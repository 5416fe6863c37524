"""A worked example: surgical tools that went back into use without every step of cleaning.

quercus demo
quercus demo --data hospital.csv    # its events as a file, to try the other commands on
"""

from __future__ import annotations

import argparse

from quercus.cli import exits


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help="draw the plan as well: .svg .png .pdf .dot")
    parser.add_argument("--data", metavar="FILE", help="only write the events: .csv .jsonl .parquet .arrow")
    parser.add_argument("--query", action="store_true", help="only print the query")


def run(args: argparse.Namespace) -> int:
    from quercus.cli import hospital

    if args.query:
        print(hospital.QUERY)
    elif args.data is not None:
        import pyarrow as pa

        from quercus.backends.local.write import write_table

        write_table(pa.Table.from_pylist(hospital.stream()), args.data)
    else:
        hospital.tell(args.output)
    return exits.OK
