"""Typed expressions -> the matcher's stack code. Strings are labels there, which compare as the strings do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quercus.backends.local.specs import ColumnSpec
from quercus.errors import QueryError
from quercus.ir import expr as x
from quercus.ir.evaluate import constant
from quercus.kernels import match
from quercus.schema import Schema

if TYPE_CHECKING:
    from quercus.backends.local.specs import Name, Program

OP = {name: i for i, name in enumerate(match.OPS)}
COMPARE = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod"}


class Code:
    """Appends predicates and the columns they read to a program."""

    def __init__(self, program: Program, schema: Schema) -> None:
        self.program, self.schema = program, schema
        self._columns: dict[ColumnSpec, int] = {}

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
            return 2, self.column(a, m), self.column(b, n)
        return 3, self.column(as_float(a), m), self.column(as_float(b), n)

    # code

    def _done(self, start: int, over: int) -> int:
        if len(self.program.code) - start > 3 * 2 * match.STACK_DEPTH * 64:
            raise QueryError("E703", "a condition that is too long to run", hint="split it into several conjuncts")
        self._check_depth(start)
        self.program.preds.append((start, len(self.program.code), over))
        return len(self.program.preds) - 1

    def _check_depth(self, start: int) -> None:
        pushes = {OP[n] for n in ("null", "const_i", "const_f", "load_i", "load_f", "count", "group_i", "group_f")}
        first = {"to", "neg", "abs", "round", "floor", "ceil", "not", "is", "map"}
        unary = {OP[n] for n in match.OPS if n.split("_")[0] in first}
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
        if self._is_column(e):
            (var,) = named
            self._load(e, seen[var], chosen.get(var, seen[var].slots[0] if seen[var].slots else -1))
            return
        match e:
            case x.Compare():
                if e.op not in ("=", "<>") and e.left.type == "string":
                    self.program.ordered_texts = True
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

    def _is_column(self, e: x.Expr) -> bool:
        """Computed beforehand, over the whole buffer of the one variable that it names."""
        return len(x.variables(e)) == 1 and not x.has_group_call(e) and not isinstance(e, x.Same)

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
            self.program.texts.append((len(self.program.const_i), c.value))
            self.program.const_i.append(0)
            self._op("const_i", len(self.program.const_i) - 1)
        elif c.type == "float64":
            self.program.const_f.append(float(c.value))
            self._op("const_f", len(self.program.const_f) - 1)
        else:
            self.program.const_i.append(int(c.value))
            self._op("const_i", len(self.program.const_i) - 1)

    def _load(self, e: x.Expr, n: Name, slot: int) -> None:
        self._op(f"load_{_suffix(e.type)}", slot, self.column(e, n))

    def column(self, e: x.Expr, n: Name) -> int:
        """The column of an expression over one variable, over the variable's whole buffer."""
        return self.column_of(e, n.buffer)

    def column_of(self, e: x.Expr, buffer: int) -> int:
        spec = ColumnSpec(buffer, _anonymous(e))
        if spec not in self._columns:
            self._columns[spec] = len(self.program.columns)
            self.program.columns.append(spec)
        return self._columns[spec]

    def _in_set(self, e: x.InSet, seen: dict[str, Name], chosen: dict[str, int]) -> None:
        """`in` over values from several variables or a set: one equality after another, nulls by three-valued logic."""
        for i, item in enumerate(e.items):
            self._emit(x.Compare("=", e.value, item), seen, chosen)
            if i:
                self._op("or")
        if e.negated:
            self._op("not")

    def _call(self, e: x.Call, seen: dict[str, Name], chosen: dict[str, int]) -> None:
        self._emit(e.args[0], seen, chosen)
        if e.name in ("lower", "upper", "length"):  # of a group function: others are columns
            if e.name not in self.program.maps:
                self.program.maps.append(e.name)
            self._op("map_i", self.program.maps.index(e.name))
        elif e.type == "float64":
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
            kind = self.schema.attribute("", e.attr) or "float64"
        if e.type == "string" and e.name in ("min", "max"):
            self.program.ordered_texts = True
        column = self.column(x.Column(e.var, e.attr, kind), n)
        self._op(f"group_{_suffix(e.type)}", n.set, column * 8 + match.GROUP_FUNCTIONS.index(e.name))


def as_float(c: x.Expr) -> x.Expr:
    """The same value, as a float."""
    return c if c.type == "float64" else x.Arithmetic("*", c, x.Const(1.0, "float64"), "float64")


def _suffix(kind: str) -> str:
    return "f" if kind == "float64" else "i"


def _anonymous(e: x.Expr) -> x.Expr:
    """The same expression whoever the variable is: buffers are shared between variables."""
    if isinstance(e, x.Column):
        return x.Column("", e.attr, e.type)
    return x.with_children(e, tuple(_anonymous(c) for c in x.children(e)))
