"""What a stream looks like: its attributes and their types, its time and type columns, its concepts and keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from attrs import field, frozen

from quercus.errors import DataError, nearest

if TYPE_CHECKING:
    from quercus.ir.expr import Type
    from quercus.ir.pattern import TimeUnit

_NAMES = {
    "int64": "int int8 int16 int32 int64 integer long",
    "float64": "float float32 float64 double",
    "bool": "bool boolean",
    "string": "str string",
    "timestamp": "timestamp",
}
_ALIASES = {alias: name for name, aliases in _NAMES.items() for alias in aliases.split()}
_TIMESTAMP_UNITS = {f"timestamp[{u}]": u for u in ("s", "ms", "us", "ns")}
Attributes = Mapping[str, str] | Mapping[str, Mapping[str, str]]


def _attribute_type(name: str, given: object) -> Type:
    known = "timestamp" if given in _TIMESTAMP_UNITS else _ALIASES.get(str(given).casefold())
    if known is None:
        hint = nearest(str(given), _ALIASES) or "types: int64 float64 bool string timestamp"
        raise DataError(f"attribute '{name}' has the unknown type '{given}': {hint}", column=name)
    return cast("Type", known)


@frozen(init=False)
class Schema:
    """The shape of a stream.

    >>> import quercus as qc
    >>> schema = qc.Schema({"id": "int64", "price": "float64"}, time="ts", type="type", time_unit="s")
    >>> schema.attribute("Trade", "price")
    'float64'

    Attributes are common to all types, or given per type (`{"Wash": {"id": "int64"}, ...}`): then a type that is not
    listed, and is no concept of the hierarchy, is unknown. `types=` lists the types of a schema with common
    attributes. `type=None`: the events have no types, as the tuples of a stream for `quercus.continuous`.
    """

    common: Mapping[str, Type] | None = field(hash=False)
    per_type: Mapping[str, Mapping[str, Type]] | None = field(hash=False)
    time: str
    type: str  # empty: there is no such column
    time_unit: TimeUnit
    time_is_timestamp: bool
    ties: Literal["strict", "arrival"]
    hierarchy: Mapping[str, tuple[str, ...]] = field(repr=False, hash=False)
    order: str | None
    key: tuple[str, ...]
    types: frozenset[str] | None

    def __init__(
        self,
        attributes: Attributes,
        *,
        time: str = "ts",
        type: str | None = "type",
        time_unit: str = "ms",
        ties: str = "strict",
        hierarchy: Mapping[str, Any] | None = None,
        order: str | None = None,
        key: str | Iterable[str] | None = None,
        types: Iterable[str] | None = None,
    ) -> None:
        if time_unit not in ("s", "ms", "us", "ns"):
            raise DataError(f"time_unit '{time_unit}' is none of: s ms us ns", column=time)
        if ties not in ("strict", "arrival"):
            raise DataError(f"ties '{ties}' is none of: strict arrival")
        if not isinstance(attributes, Mapping):
            raise DataError(f"attributes are a mapping of names to types, not {type_of(attributes)}")
        if hierarchy is not None and not isinstance(hierarchy, Mapping):
            raise DataError(f"the hierarchy is a mapping of concepts, not {type_of(hierarchy)}")
        type = type or ""
        if time == type:
            raise DataError(f"'{time}' cannot be both the time and the type column", column=time)
        kinds = {isinstance(v, Mapping) for v in attributes.values()}
        if len(kinds) > 1:
            raise DataError("attributes are common to all types or given per type, not both at once")
        nested = kinds == {True}
        flat: dict[str, Mapping[str, str]] = cast("Any", dict(attributes) if nested else {"": attributes})
        unit, is_timestamp = time_unit, False
        typed: dict[str, dict[str, Type]] = {}
        for owner, columns in flat.items():
            typed[owner] = {}
            for name, given in columns.items():
                kind = _attribute_type(name, given)
                if not str(name):
                    raise DataError(f"an attribute needs a name, not {name!r}")
                if name == time and kind not in ("int64", "timestamp"):
                    raise DataError(f"the time column '{time}' is int64 or a timestamp, not {given}", column=time)
                if name == time:
                    is_timestamp |= kind == "timestamp"
                    unit = _TIMESTAMP_UNITS.get(given, "us" if kind == "timestamp" else unit)
                elif name != type:
                    _refuse_shadowing(name, time, type)
                    typed[owner][name] = kind
        if not isinstance(key, str | Iterable | None):
            raise DataError(f"the key is a name or several names, not {type_of(key)}")
        _refuse_two_types(typed)
        keys = (key,) if isinstance(key, str) else tuple(key or ())
        self.__attrs_init__(
            common=None if nested else typed[""],
            per_type=typed if nested else None,
            time=time,
            type=type,
            time_unit=cast("TimeUnit", unit),
            time_is_timestamp=is_timestamp,
            ties=cast("Any", ties),
            hierarchy=_flatten_hierarchy(hierarchy or {}),
            order=order,
            key=keys,
            types=frozenset(types) if types is not None else None,
        )
        for name in keys:
            for owner in typed:
                if self.attribute(owner, name) is None:
                    where = f" of type '{owner}'" if owner else ""
                    raise DataError(f"the key '{name}' is no attribute{where}", column=name)

    @classmethod
    def infer(cls, source: object, *, time: str = "ts", type: str | None = "type", **options: Any) -> Schema:
        """The schema of a table, of anything with an Arrow stream, or of the first file of a path or glob.

        >>> import quercus as qc
        >>> qc.Schema.infer({"ts": [1], "type": ["A"], "price": [2.5]}).attributes("A")
        {'price': 'float64'}
        """
        from quercus.backends.local.infer import infer_columns

        return cls(infer_columns(source, time, type), time=time, type=type, **options)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `from_dict` reads back: plans carry their schema."""
        own = self.per_type if self.per_type is not None else self.common
        time = {self.time: f"timestamp[{self.time_unit}]"} if self.time_is_timestamp else {}
        attributes = (
            {n: {**c, **time} for n, c in (self.per_type or {}).items()} if self.per_type else {**(own or {}), **time}
        )
        return {
            "attributes": attributes,
            "time": self.time,
            "type": self.type or None,
            "time_unit": self.time_unit,
            "ties": self.ties,
            "hierarchy": {n: list(c) for n, c in self.hierarchy.items()},
            "order": self.order,
            "key": list(self.key),
            "types": sorted(self.types) if self.types is not None else None,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """The schema of a plan document."""
        return cls(**data)

    def type_names(self) -> frozenset[str] | None:
        """Every known type and concept, or None when any name will do."""
        named = self.types if self.per_type is None else frozenset(self.per_type)
        if named is None:
            return None
        return named | frozenset(self.hierarchy) | {c for cs in self.hierarchy.values() for c in cs}

    def accepts(self, type_name: str) -> tuple[str, ...]:
        """The names an event's type may have to be an event of this type: itself and all below it."""
        found = [type_name]
        for name in found:
            found.extend(c for c in self.hierarchy.get(name, ()) if c not in found)
        return tuple(found)

    def attributes(self, type_name: str) -> Mapping[str, Type]:
        """The attributes of a type; of a concept: those that all its types share."""
        if self.per_type is None:
            return self.common or {}
        shared: dict[str, Type] | None = None
        for name in self.accepts(type_name):
            own = self.per_type.get(name)
            if own is not None:
                shared = dict(own) if shared is None else {a: t for a, t in shared.items() if own.get(a) == t}
        return shared or {}

    def attribute(self, type_name: str, name: str) -> Type | None:
        """The type of an attribute, `ts` and `type` included, or None."""
        if name in ("ts", self.time):
            return "timestamp" if self.time_is_timestamp else "int64"
        if self.type and name in ("type", self.type):
            return "string"
        return self.attributes(type_name).get(name)

    @property
    def timestamp_unit(self) -> TimeUnit:
        """The unit in which timestamps are compared: the time column's, or microseconds where times are integers."""
        return self.time_unit if self.time_is_timestamp else "us"

    @property
    def special(self) -> tuple[str, ...]:
        """The columns that are no attributes: the time and, where there is one, the type."""
        return (self.time, self.type) if self.type else (self.time,)

    def columns(self) -> dict[str, Type]:
        """The attributes of all types together.

        Where event types declare one attribute as int64 and as float64, its column holds integers.
        """
        found: dict[str, Type] = {}
        for attributes in (self.per_type or {"": self.common or {}}).values():
            for name, kind in attributes.items():
                if found.setdefault(name, kind) != kind:  # numbers of two kinds: nothing else gets here
                    found[name] = "int64"
        return found

    def canonical(self, name: str) -> str:
        """The time and type columns under their names in the language."""
        return "ts" if name == self.time else "type" if name == self.type else name


def type_of(value: object) -> str:
    return type(value).__name__


def _refuse_two_types(typed: Mapping[str, Mapping[str, Type]]) -> None:
    """All events stand in one table: an attribute has one type there, or is a number in all."""
    seen: dict[str, tuple[str, Type]] = {}
    for owner, columns in typed.items():
        for name, kind in columns.items():
            first, other = seen.setdefault(name, (owner, kind))
            if other != kind and {other, kind} != {"int64", "float64"}:
                raise DataError(
                    f"attribute '{name}' is {other} in '{first}' and {kind} in '{owner}': give it one type", column=name
                )


def _refuse_shadowing(name: str, time: str, type_: str) -> None:
    for special, column in (("ts", time), ("type", type_)):
        if name == special and column:
            raise DataError(
                f"attribute '{name}' would hide v.{special}, which means the column '{column}': rename it", column=name
            )


def _flatten_hierarchy(tree: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """{"TX": {"Dallas": ["Bus"]}} -> {"TX": ("Dallas",), "Dallas": ("Bus",)}; a name with two parents is no forest."""
    below: dict[str, tuple[str, ...]] = {}
    parent: dict[str, str] = {}
    todo: list[tuple[str, Any]] = list(tree.items())
    while todo:
        name, sub = todo.pop(0)
        if isinstance(sub, str) or not isinstance(sub, Mapping | Iterable):
            raise DataError(f"hierarchy: under '{name}' stands {sub!r}; give a list of names or a mapping")
        names = tuple(str(c) for c in sub)
        for c in names:
            if parent.setdefault(c, name) != name:
                raise DataError(f"hierarchy: '{c}' stands under both '{parent[c]}' and '{name}'; give it one parent")
        below[name] = below.get(name, ()) + tuple(c for c in names if c not in below.get(name, ()))
        if isinstance(sub, Mapping):
            todo.extend(sub.items())
    for name in below:
        seen, at = {name}, name
        while at in parent:
            at = parent[at]
            if at in seen:
                raise DataError(f"hierarchy: '{name}' stands below itself")
            seen.add(at)
    return below
