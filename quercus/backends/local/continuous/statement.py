"""A query over relations as one SQL statement, for all windows and all instants together.

Every step is a table of rows with `o`, their order, `f` and `u`, the times from which and until which they are there,
and `x0`, `x1`, ..., their values. There are two kinds of rows. *Lasting* ones come from windows that slide: they are
the same row as long as their values are the same, so that ISTREAM and DSTREAM compare values from one instant to the
next. *Fresh* ones come from pattern windows: each is there at one instant, and is no other row's equal.

Nothing is evaluated instant by instant that need not be: a joined row is there while all its parts are, an aggregate
changes only when its group does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import assert_never

from attrs import field, frozen

from quercus.backends.local.continuous.relations import NEVER
from quercus.backends.local.continuous.sql import DUCKDB, Dialect, Expressions, balanced
from quercus.ir import expr as x
from quercus.ir import window as w

INSTANTS = "instants"


@frozen
class Statement:
    """A query as SQL: its text, its parameters, and which tables it needs.

    Table `s<i>_<j>` has the tuples of source j of SELECT i, `k<i>_<j>` its closed windows; `instants` all times.
    """

    sql: str
    parameters: list[object]
    instants: bool
    counted: Mapping[str, frozenset[str]]  # the tables of closed windows that are read, and the counts of them
    functions: frozenset[str] = frozenset()  # of our own that it calls


@frozen
class Part:
    """The rows of a relation, as names of tables; None where it has none of the kind."""

    lasting: str | None
    fresh: str | None


def statement(query: w.Query, dialect: Dialect = DUCKDB) -> Statement:
    """The rows that the query gives: `ts` and `x0`, `x1`, ..., in order; or with `o`, their order at one time.

    >>> from quercus.compiler.continuous import compiled
    >>> from quercus.schema import Schema
    >>> query = compiled("ISTREAM(SELECT x FROM S[Now] WHERE x > 'a')", {"S": Schema({"x": "string"})}).query.query
    >>> statement(query).parameters
    ['a']
    """
    return _Writer(query, Expressions(dialect)).statement()


@frozen
class _Writer:
    query: w.Query
    expressions: Expressions
    tables: list[str] = field(factory=list)  # name AS (SELECT ...)
    used: set[str] = field(factory=set)
    counted: dict[str, set[str]] = field(factory=dict)

    # the whole

    def statement(self) -> Statement:
        part = self.relation(self.query.relation, count())
        values = ", ".join(self.values)
        given = []
        if part.lasting is not None:
            given.append(self.lasting(part.lasting))
        if part.fresh is not None:
            at = "f + 1" if self.query.kind == "dstream" else "f"
            given.append(f"SELECT {at} AS ts, {values}, o FROM {part.fresh}")
        together = f"FROM ({' UNION ALL '.join(given)})"
        ordered = f"{values} {together} ORDER BY ts, o" if self.dialect.ordered else f"{values}, o {together}"
        return Statement(
            f"WITH {', '.join([*self.read(), *self.tables])} SELECT ts, {ordered}",
            self.expressions.parameters,
            INSTANTS in self.used,
            {name: frozenset(counts) for name, counts in self.counted.items()},
            frozenset(self.expressions.functions),
        )

    @property
    def dialect(self) -> Dialect:
        return self.expressions.dialect

    def read(self) -> Iterator[str]:
        """The tables that are given, where they are not read by their names."""
        selects = enumerate(w.selects(self.query.relation))
        sources = [f"s{i}_{j}" for i, select in selects for j in range(len(select.sources))]
        for name in (*sources, *self.counted, *sorted(self.used)):
            text = self.dialect.given(name)
            if text is not None:
                yield f"{name} AS (SELECT * FROM {text})"

    @property
    def values(self) -> list[str]:
        return [f"x{i}" for i in range(len(self.query.columns))]

    def table(self, sql: str, *, kept: bool = False) -> str:
        """A name for a step; `kept`: it is read more than once."""
        name = f"r{len(self.tables)}"
        self.tables.append(f"{name} AS {self.dialect.kept if kept else ''}({sql})")
        return name

    def lasting(self, rows: str) -> str:
        """What a relation to stream operator gives of rows that last."""
        values = ", ".join(self.values)
        match self.query.kind:
            case "rstream":
                self.used.add(INSTANTS)
                return f"SELECT t AS ts, {values}, o FROM {rows} JOIN {INSTANTS} ON f <= t AND t < u"
            case "istream":  # of equal rows that come and go at once, those that come last are new
                sign, order = 1, "o DESC"
            case "dstream":
                sign, order = -1, "o"
            case kind:
                assert_never(kind)
        same = f"PARTITION BY {values}, t"
        ranked = (
            f"SELECT *, sum(d) OVER ({same}) AS net, row_number() OVER ({same}, d ORDER BY {order}) AS i "
            f"FROM ({self.changes(rows)})"
        )
        return f"SELECT t AS ts, {values}, o FROM ({ranked}) WHERE d = {sign} AND i <= {sign} * net"

    def changes(self, rows: str) -> str:
        """Rows that come (`d` is 1) and go (-1), at the time `t`."""
        values = ", ".join(self.values)
        return (
            f"SELECT {values}, f AS t, 1 AS d, o FROM {rows} UNION ALL "
            f"SELECT {values}, u, -1, o FROM {rows} WHERE u < {NEVER}"
        )

    # UNION

    def relation(self, e: w.Relation, numbers: Iterator[int]) -> Part:
        match e:
            case w.Select():
                return self.select(e, next(numbers))
            case w.Union():
                left, right = self.relation(e.left, numbers), self.relation(e.right, numbers)
                lasting = self.both(left.lasting, right.lasting)
                fresh = self.both(left.fresh, right.fresh)
                if e.all:
                    return Part(lasting, fresh)
                return self.once(lasting, fresh)
            case _:
                assert_never(e)

    def both(self, one: str | None, other: str | None) -> str | None:
        if one is None or other is None:
            return one or other
        return self.table(f"SELECT * FROM {one} UNION ALL SELECT * FROM {other}", kept=True)

    def once(self, lasting: str | None, fresh: str | None) -> Part:
        """Equal rows of one instant once. A row that a lasting one equals lasts; others are of their instant."""
        values = ", ".join(self.values)
        if lasting is not None:
            lasting = self.distinct(lasting)
        if fresh is not None:
            fresh = self.table(f"SELECT min(o) AS o, f, f + 1 AS u, {values} FROM {fresh} GROUP BY f, {values}")
        if lasting is not None and fresh is not None:
            equal = " AND ".join(f"a.{v} IS NOT DISTINCT FROM b.{v}" for v in self.values)
            there = f"SELECT 1 FROM {lasting} b WHERE b.f <= a.f AND a.f < b.u AND {equal}"
            fresh = self.table(f"SELECT * FROM {fresh} a WHERE NOT EXISTS ({there})")
        return Part(lasting, fresh)

    def distinct(self, rows: str) -> str:
        """Each value while at least one row has it."""
        values = ", ".join(self.values)
        changes = (
            f"SELECT {values}, t, sum(d) AS d, min(o) AS o FROM ({self.changes(rows)}) "
            f"GROUP BY {values}, t HAVING sum(d) <> 0"
        )
        same = f"PARTITION BY {values} ORDER BY t"
        counted = self.table(
            f"SELECT o, t AS f, lead(t, 1, {NEVER}) OVER ({same}) AS u, {values}, sum(d) OVER ({same}) AS count "
            f"FROM ({changes})"
        )
        return self.table(f"SELECT o, f, u, {values} FROM {counted} WHERE count > 0", kept=True)

    # SELECT

    def select(self, e: w.Select, number: int) -> Part:
        one = _Select(self, e, number)
        rows = one.grouped() if e.grouped else one.plain()
        if e.windows:
            if e.distinct:
                keys = ", ".join([*one.keys, "f", *self.values])
                rows = self.table(f"SELECT min(o) AS o, min(u) AS u, {keys} FROM {rows} GROUP BY {keys}")
        elif e.distinct:
            rows = self.distinct(rows)
        shifted = self.dialect.branch(number, len(list(w.selects(self.query.relation))))
        columns = [
            f"CAST({v} AS {self.dialect.types[kind]}) AS {v}"
            for v, (_, kind) in zip(self.values, self.query.columns, strict=True)
        ]
        rows = self.table(f"SELECT {shifted} AS o, f, u, {', '.join(columns)} FROM {rows}", kept=True)
        return Part(None, rows) if e.windows else Part(rows, None)


def _is_running(a: w.Aggregate) -> bool:
    """Whether an aggregate follows from what comes and what goes: exact only of whole numbers."""
    whole_ = a.value is not None and a.value.type in ("int64", "null")
    return not a.distinct and (a.function == "count" or (a.function in ("sum", "avg") and whole_))


@frozen
class _Select:
    """One SELECT: its joined rows, and what becomes of them."""

    writer: _Writer
    select: w.Select
    number: int

    @property
    def keys(self) -> list[str]:
        """The columns that say which closed windows a row is of."""
        return [f"w{i}" for i in self.select.windows]

    def source(self, i: int) -> str:
        return f"s{self.number}_{i}"

    def windows(self, i: int) -> str:
        name = f"k{self.number}_{i}"
        self.writer.counted.setdefault(name, set())
        return name

    def named(self, e: x.Column) -> str:
        """A column of a source, or a count of its window."""
        i = int(e.var[1:])
        if e.var.startswith("w"):
            table = self.windows(i)
            self.writer.counted[table].add(e.attr)
            return f"{table}.{e.attr}"
        reads = [(c.attr, c.type) for c in self.select.sources[i].reads]
        return f"{self.source(i)}.c{reads.index((e.attr, e.type))}"

    def counted(self, expressions: list[x.Expr]) -> list[int]:
        """The pattern windows whose counts are named."""
        vars_ = {n.var for e in expressions for n in x.walk(e) if isinstance(n, x.Column)}
        return [i for i in self.select.windows if f"w{i}" in vars_]

    def joined(self, columns: list[str], also: list[int]) -> str:
        """The rows of FROM and WHERE: each is there while all its tuples are. `also`: windows whose counts are read."""
        e, sources = self.select, range(len(self.select.sources))
        instant = [i for i in sources if isinstance(e.sources[i].window, w.PatternWindow | w.Now)]
        tables = [self.source(i) for i in sources]
        conditions = []
        for i in sources:
            for j in range(i + 1, len(sources)):
                a, b = tables[i], tables[j]
                if i in instant and j in instant:
                    conditions.append(f"{a}.f = {b}.f")
                else:
                    conditions += [f"{a}.f < {b}.u", f"{b}.f < {a}.u"]
        for i in also:
            conditions.append(f"{self.windows(i)}.w = {tables[i]}.w")
        conditions += self.writer.expressions.conjunction(e.where, self.named)
        if len(tables) == 1:
            order, from_, until = f"{tables[0]}.n", f"{tables[0]}.f", f"{tables[0]}.u"
        else:
            places = [*(f"{tables[i]}.w" for i in e.windows), *(f"{t}.n" for t in tables)]
            order = self.writer.dialect.place(places)
            from_ = f"greatest({', '.join(f'{t}.f' for t in tables)})"
            until = f"least({', '.join(f'{t}.u' for t in tables)})"
        keys = [f"{tables[i]}.w AS w{i}" for i in e.windows]
        listed = [f"{order} AS o", f"{from_} AS f", f"{until} AS u", *keys, *columns]
        where = f" WHERE {balanced(conditions, 'AND')}" if conditions else ""
        every = ", ".join([*tables, *(self.windows(i) for i in also)])
        return self.writer.table(f"SELECT {', '.join(listed)} FROM {every}{where}", kept=True)

    def plain(self) -> str:
        """SELECT without groups: a row for each row."""
        values = [o.value for o in self.select.outputs]
        columns = [f"{self.writer.expressions.value(v, self.named)} AS x{i}" for i, v in enumerate(values)]
        return self.joined(columns, self.counted(values))

    # groups

    def grouped(self) -> str:
        e, expressions = self.select, self.writer.expressions
        groups = self.source(0) if e.is_of_ends else self.groups()
        read = [*(o.value for o in e.outputs), *e.having]
        also = self.counted(read)
        outputs = [f"{expressions.value(o.value, self.of_group)} AS x{i}" for i, o in enumerate(e.outputs)]
        conditions = [f"{self.windows(i)}.w = {groups}.w{i}" for i in also]
        conditions += expressions.conjunction(e.having, self.of_group)
        where = f" WHERE {balanced(conditions, 'AND')}" if conditions else ""
        tables = ", ".join([groups, *(self.windows(i) for i in also)])
        keys = [f"{groups}.{c}" for c in ("o", "f", "u", *self.keys)]
        return self.writer.table(f"SELECT {', '.join([*keys, *outputs])} FROM {tables}{where}")

    def groups(self) -> str:
        """The rows of FROM and WHERE in their groups, with the aggregates of each."""
        e, expressions = self.select, self.writer.expressions
        columns = [f"{self.key(g)} AS g{i}" for i, g in enumerate(e.group_by)]
        for i, a in enumerate(e.aggregates):
            if a.value is not None:
                columns.append(f"{expressions.value(a.value, self.named)} AS v{i}")
        for i in sorted({a.source for a in e.aggregates if a.function in ("first", "last")}):
            columns.append(f"{self.source(i)}.n AS p{i}")
        if not e.windows:
            columns.append(f"{self.writer.dialect.group([self.key(g) for g in e.group_by])} AS g")
        rows = self.joined(columns, [])
        return self.of_windows(rows) if e.windows else self.over_time(rows)

    def key(self, e: x.Expr) -> str:
        """What is grouped by; 0.0 and -0.0 are equal, and shown as one."""
        value = self.writer.expressions.value(e, self.named)
        return f"({value} + 0.0)" if e.type == "float64" else value

    def of_group(self, e: x.Column) -> str:
        match e.var:
            case w.GROUP:
                return f"g{e.attr}"
            case w.AGGREGATE:
                return f"a{e.attr}"
            case _:
                return self.named(e)

    @property
    def is_of_tuples(self) -> bool:
        """FIRST and LAST are of a tuple: where there is none, there is no row, and no null in its place."""
        return any(a.function in ("first", "last") for a in self.select.aggregates)

    def of_windows(self, rows: str) -> str:
        """The groups of each closed window; without GROUP BY one, as in SQL also where no row is left."""
        e = self.select
        groups = [f"g{i}" for i in range(len(e.group_by))]
        by = ", ".join([*self.keys, "f", *groups])
        found = self.writer.table(
            f"SELECT min(o) AS o, min(u) AS u, {', '.join([by, *self.aggregates()])} FROM {rows} GROUP BY {by}"
        )
        if e.group_by or self.is_of_tuples:
            return found
        tables = {i: self.windows(i) for i in e.windows}
        first, *others = tables.values()
        every = first + "".join(f" JOIN {t} ON {t}.f = {first}.f" for t in others)
        same = " AND ".join(f"{t}.w = {found}.w{i}" for i, t in tables.items())
        keys = [f"{t}.w AS w{i}" for i, t in tables.items()]
        order = self.writer.dialect.place([f"{t}.w" for t in tables.values()])
        values = [
            f"coalesce(a{i}, 0) AS a{i}" if a.function == "count" else f"a{i}" for i, a in enumerate(e.aggregates)
        ]
        listed = ", ".join([f"{order} AS o", f"{first}.f AS f", f"{first}.f + 1 AS u", *keys, *values])
        return self.writer.table(f"SELECT {listed} FROM {every} LEFT JOIN {found} ON {same}")

    def over_time(self, rows: str) -> str:
        """The groups of a lasting relation, each from one of its changes to the next, in the order of their keys.

        A relation without GROUP BY is one group, `g` is 0; it is there from the first instant on.
        """
        e = self.select
        if not e.group_by:
            self.writer.used.add(INSTANTS)
        if all(_is_running(a) for a in e.aggregates):
            return self.running(rows)
        times = f"SELECT g, f AS t FROM {rows} UNION SELECT g, u FROM {rows} WHERE u < {NEVER}"
        if not e.group_by:
            times += f" UNION SELECT 0, min(t) FROM {INSTANTS} HAVING min(t) IS NOT NULL"
        spans = self.writer.table(
            f"SELECT g, t, lead(t, 1, {NEVER}) OVER (PARTITION BY g ORDER BY t) AS until FROM ({times})"
        )
        keys = [f"{self.writer.dialect.first(f'g{i}', 'o')} AS g{i}" for i in range(len(e.group_by))]
        listed = ", ".join([f"{spans}.g AS o", "t AS f", "until AS u", *keys, *self.aggregates()])
        join = "JOIN" if e.group_by or self.is_of_tuples else "LEFT JOIN"
        there = f"{spans}.g = {rows}.g AND f <= t AND t < u"
        return self.writer.table(f"SELECT {listed} FROM {spans} {join} {rows} ON {there} GROUP BY {spans}.g, t, until")

    def running(self, rows: str) -> str:
        """The same of counts and whole sums: what comes is added, what goes is taken away again."""
        e, dialect = self.select, self.writer.dialect
        keys = [f"g{i}" for i in range(len(e.group_by))]
        values = [f"v{i}" for i, a in enumerate(e.aggregates) if a.value is not None]
        columns = ", ".join(["g", "o", *keys, *values])
        both = f"SELECT {columns}, f AS t, 1 AS d FROM {rows} UNION ALL SELECT {columns}, u, -1 FROM {rows}"
        sums = {"n": "sum(d)"}
        for i, a in enumerate(e.aggregates):
            if a.value is not None:
                sums[f"n{i}"] = f"sum(d) FILTER (WHERE v{i} IS NOT NULL)"
                if a.function != "count":
                    sums[f"t{i}"] = dialect.signed(f"v{i}")
        listed = [*(f"{dialect.first(k, 'o')} AS {k}" for k in keys), *(f"{s} AS {name}" for name, s in sums.items())]
        changes = f"SELECT g, t, {', '.join(listed)} FROM ({both}) WHERE t < {NEVER} GROUP BY g, t"
        if not e.group_by:
            nothing = ", ".join(f"0 AS {name}" for name in sums)
            changes += f" UNION ALL SELECT 0, min(t), {nothing} FROM {INSTANTS} HAVING min(t) IS NOT NULL"
            listed = [f"sum({name}) AS {name}" for name in sums]
            changes = f"SELECT g, t, {', '.join(listed)} FROM ({changes}) GROUP BY g, t"
        same = "OVER (PARTITION BY g ORDER BY t)"
        totals = [f"coalesce(sum({name}) {same}, 0) AS {name}" for name in sums]
        spans = self.writer.table(
            f"SELECT g AS o, t AS f, lead(t, 1, {NEVER}) {same} AS u, {', '.join([*keys, *totals])} FROM ({changes})"
        )
        found = []
        for i, a in enumerate(e.aggregates):
            count_ = "n" if a.value is None else f"n{i}"
            match a.function:
                case "count":
                    found.append(f"CAST({count_} AS BIGINT) AS a{i}")
                case "sum":
                    found.append(f"CASE WHEN {count_} > 0 THEN {dialect.whole(f't{i}')} END AS a{i}")
                case _:
                    mean = dialect.floating("/", f"CAST(t{i} AS DOUBLE)", f"CAST({count_} AS DOUBLE)")
                    found.append(f"CASE WHEN {count_} > 0 THEN {mean} END AS a{i}")
        where = " WHERE n > 0" if e.group_by else ""
        return self.writer.table(f"SELECT {', '.join(['o', 'f', 'u', *keys, *found])} FROM {spans}{where}")

    def aggregates(self) -> list[str]:
        return [f"{self.aggregate(a, i)} AS a{i}" for i, a in enumerate(self.select.aggregates)]

    def aggregate(self, a: w.Aggregate, i: int) -> str:
        """Nulls are left out, as in SQL; floats are added in the order of the rows, so that the sum is always one."""
        value, dialect = f"v{i}", self.writer.dialect
        once = f"DISTINCT {value}" if a.distinct else value
        is_float = a.value is not None and a.value.type == "float64"
        added = dialect.float_sum(value, a.distinct) if is_float else dialect.sum(value, a.distinct)
        match a.function:
            case "count":
                return "count(o)" if a.value is None else f"count({once})"
            case "sum":
                return added if is_float else dialect.whole(added)
            case "avg":
                return dialect.floating("/", f"CAST({added} AS DOUBLE)", f"CAST(count({once}) AS DOUBLE)")
            case "min" | "max" if is_float:
                odd = f"bool_or(isnan({value}))"
                return f"(CASE WHEN {odd} THEN CAST('nan' AS DOUBLE) ELSE {a.function}({value}) END)"
            case "min" | "max":
                return f"{a.function}({value})"
            case "first":
                return dialect.first(value, f"p{a.source}")
            case "last":
                return dialect.last(value, f"p{a.source}")
            case _:
                assert_never(a.function)
