"""Typed expressions -> the matcher's stack code.

Strings become ranks of one sorted dictionary, so that codes compare as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quercus.backends.local.events import Events
from quercus.backends.local.expressions import evaluate
from quercus.backends.local.values import Values
from quercus.errors import QueryError
from quercus.ir import expr as x
from quercus.ir import text
from quercus.ir.evaluate import constant
from quercus.kernels import match

if TYPE_CHECKING:
    from quercus.backends.local.specs import Name, Program

OP = {name: i for i, name in enumerate(match.OPS)}
COMPARE = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod"}


class Code:
    """Appends predicates and the columns they read to a program."""

    def __init__(self, program: Program, events: Events) -> None:
        self.program, self.events = program, events
        self._columns: dict[tuple[int, x.Expr], int] = {}
        self._strings: list[tuple[int, Values]] = []  # columns to be ranked
        self._texts: list[tuple[int, str]] = []  # constants to be ranked

    # what the compiler of alternatives asks for

    def predicate(self, e: x.Expr, seen: dict[str, Name], chosen: dict[str, int], *, over: int) -> int:
        """A predicate's number. `chosen` says which slot stands for a variable of several."""
        start = len(self.program.code)
        self._emit(e, seen, chosen)
        return self._done(start, over)

    def equal_slots(self, a: x.Column, m: Name, s: int, b: x.Column, n: Name, u: int, *, over: int = -1) -> int:
        """a = b, for these two slots."""
        start = len(self.program.code)
        wide = "float64" in (a.type, b.type)
        for c, name, slot in ((a, m, s), (b, n, u)):
            self._load(c, name, slot)
            if wide and c.type != "float64":
                self._op("to_f")
        self._op("eq_f" if wide else "eq_i")
        return self._done(start, over)

    def pair_columns(self, a: x.Column, m: Name, b: x.Column, n: Name) -> tuple[int, int, int]:
        """The kind of set pair that compares two columns, and the columns; as floats where either is one."""
        if "float64" not in (a.type, b.type):
            return 2, self._column(a, m), self._column(b, n)
        return 3, self._column(_as_float(a), m), self._column(_as_float(b), n)

    def finish(self) -> None:
        """Rank all strings together: code point order is the order of UTF-8 bytes."""
        if not self._strings and not self._texts:
            return
        parts = [pa.array(v.data).cast(pa.large_string()) for _, v in self._strings]
        constants = pa.array([s for _, s in self._texts], pa.large_string())
        known = pc.drop_null(pa.concat_arrays([*parts, constants])).unique()
        ranked = known.take(pc.sort_indices(known))
        for (number, values), part in zip(self._strings, parts, strict=True):
            ranks = pc.fill_null(pc.index_in(part, value_set=ranked), -1).cast(pa.int64())
            self.program.columns[number] = (np.ascontiguousarray(ranks.to_numpy()), _valid(values))
        codes = pc.index_in(constants, value_set=ranked).to_pylist()
        for (number, _), code in zip(self._texts, codes, strict=True):
            self.program.const_i[number] = code

    # code

    def _done(self, start: int, over: int) -> int:
        if len(self.program.code) - start > 3 * 2 * match.STACK_DEPTH * 64:
            raise QueryError("E703", "a condition that is too long to run", hint="split it into several conjuncts")
        self._check_depth(start)
        self.program.preds.append((start, len(self.program.code), over))
        return len(self.program.preds) - 1

    def _check_depth(self, start: int) -> None:
        pushes = {OP[n] for n in ("null", "const_i", "const_f", "load_i", "load_f", "count", "group_i", "group_f")}
        unary = {
            OP[n] for n in match.OPS if n.split("_")[0] in ("to", "neg", "abs", "round", "floor", "ceil", "not", "is")
        }
        depth = deepest = 0
        for i in range(start, len(self.program.code), 3):
            op = self.program.code[i]
            depth += 1 if op in pushes else 0 if op in unary else -1
            deepest = max(deepest, depth)
        if deepest > match.STACK_DEPTH:
            raise QueryError("E703", "a condition that nests too deeply to run", hint="split it into several conjuncts")

    def _op(self, name: str, a: int = 0, b: int = 0) -> None:
        self.program.code.extend((OP[name], a, b))

    def _emit(self, e: x.Expr, seen: dict[str, Name], chosen: dict[str, int]) -> None:
        named = x.variables(e)
        if not named:
            self._constant(constant(e) or x.Const(None, e.type))
            return
        if len(named) == 1 and not x.has_group_call(e) and not isinstance(e, x.Same):
            (var,) = named
            self._load(e, seen[var], chosen.get(var, seen[var].slots[0] if seen[var].slots else -1))
            return
        match e:
            case x.Compare():
                wide = self._both(e.left, e.right, seen, chosen)
                self._op(f"{COMPARE[e.op]}_{'f' if wide else 'i'}")
            case x.Arithmetic():
                wide = self._both(e.left, e.right, seen, chosen, float_too=e.op == "/")
                self._op(f"{ARITHMETIC[e.op]}_{'f' if wide else 'i'}")
            case x.Logic():
                for i, item in enumerate(e.items):
                    self._emit(item, seen, chosen)
                    if i:
                        self._op(e.op)
            case x.NotTrue():
                self._emit(e.value, seen, chosen)
                self._op("not")
            case x.Negative():
                self._emit(e.value, seen, chosen)
                self._op(f"neg_{_suffix(e.type)}")
            case x.IsNull():
                self._emit(e.value, seen, chosen)
                self._op("is_not_null" if e.negated else "is_null")
            case x.InSet():
                self._in_set(e, seen, chosen)
            case x.Call():
                self._call(e, seen, chosen)
            case x.GroupCall():
                self._group(e, seen)
            case _:
                raise AssertionError(e)

    def _both(
        self, left: x.Expr, right: x.Expr, seen: dict[str, Name], chosen: dict[str, int], *, float_too: bool = False
    ) -> bool:
        """Two operands, as floats where either is one."""
        wide = float_too or "float64" in (left.type, right.type)
        for side in (left, right):
            self._emit(side, seen, chosen)
            if wide and side.type != "float64":
                self._op("to_f")
        return wide

    def _constant(self, c: x.Const) -> None:
        if c.value is None:
            self._op("null")
        elif isinstance(c.value, str):
            self._texts.append((len(self.program.const_i), c.value))
            self.program.const_i.append(0)
            self._op("const_i", len(self.program.const_i) - 1)
        elif c.type == "float64":
            self.program.const_f.append(float(c.value))
            self._op("const_f", len(self.program.const_f) - 1)
        else:
            self.program.const_i.append(int(c.value))
            self._op("const_i", len(self.program.const_i) - 1)

    def _load(self, e: x.Expr, n: Name, slot: int) -> None:
        self._op(f"load_{_suffix(e.type)}", slot, self._column(e, n))

    def _column(self, e: x.Expr, n: Name) -> int:
        """The column of an expression over one variable, computed over the variable's whole buffer."""
        key = (n.buffer, _anonymous(e))
        if key not in self._columns:
            at = self.program.buffers[n.buffer].row
            values = evaluate(e, lambda c: self.events.values(c.attr, at), len(at))
            number = self._columns[key] = len(self.program.columns)
            if values.kind == "string":
                self._strings.append((number, values))
                self.program.columns.append((None, None))
            else:
                kind: Any = np.float64 if e.type == "float64" else np.int64
                data = values.data if values.data.dtype == kind else values.data.astype(kind)
                self.program.columns.append((np.ascontiguousarray(data), _valid(values)))
        return self._columns[key]

    def _in_set(self, e: x.InSet, seen: dict[str, Name], chosen: dict[str, int]) -> None:
        """`in` over values from several variables or a set: one equality after another, nulls by three-valued logic."""
        for i, item in enumerate(e.items):
            self._emit(x.Compare("=", e.value, item), seen, chosen)
            if i:
                self._op("or")
        if e.negated:
            self._op("not")

    def _call(self, e: x.Call, seen: dict[str, Name], chosen: dict[str, int]) -> None:
        if e.name in ("lower", "upper", "length"):
            raise QueryError(
                "E703", f"{text.scalar(e)}: text functions of a group function do not run", hint="compare it as it is"
            )
        self._emit(e.args[0], seen, chosen)
        if e.type == "float64":
            self._op(f"{e.name}_f")
        elif e.name == "abs":
            self._op("abs_i")

    def _group(self, e: x.GroupCall, seen: dict[str, Name]) -> None:
        n = seen[e.var]
        assert n.set is not None
        if e.attr is None:
            self._op("count", n.set)
            return
        kind: x.Type = e.type
        if e.name == "avg":
            kind = self.events.schema.attribute("", e.attr) or "float64"
        column = self._column(x.Column(e.var, e.attr, kind), n)
        self._op(f"group_{_suffix(e.type)}", n.set, column * 8 + match.GROUP_FUNCTIONS.index(e.name))


def _as_float(c: x.Column) -> x.Expr:
    return c if c.type == "float64" else x.Arithmetic("*", c, x.Const(1.0, "float64"), "float64")


def _suffix(kind: str) -> str:
    return "f" if kind == "float64" else "i"


def _valid(v: Values) -> NDArray[np.uint8] | None:
    return None if v.valid is None else np.ascontiguousarray(v.valid).view(np.uint8)


def _anonymous(e: x.Expr) -> x.Expr:
    """The same expression whoever the variable is: buffers are shared between variables."""
    if isinstance(e, x.Column):
        return x.Column("", e.attr, e.type)
    return x.with_children(e, tuple(_anonymous(c) for c in x.children(e)))
