"""Flat alternatives -> the matcher's program: slots, levels, and predicates as small typed code.

A slot holds the index of one bound event. A plain variable has one slot, `B[n]` has n, and `B+` or `B*` has a slot that
its elements pass through while they are tested. Whatever names a single variable is computed as a column beforehand;
only what compares variables is left for the matcher.
"""

from __future__ import annotations

from quercus.backends.local import exists, sieves, views
from quercus.backends.local.buffers import spec_of
from quercus.backends.local.code import Code
from quercus.backends.local.joins import Homes, add_nodes, finish_nodes, joined
from quercus.backends.local.orders import binding_order, is_last
from quercus.backends.local.release import Variant
from quercus.backends.local.specs import (
    BufferSpec,
    FlatSpec,
    HeldSpec,
    LevelSpec,
    Name,
    NegationSpec,
    Program,
    SetSpec,
    WindowSpec,
)
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import tree as t
from quercus.ir.flat import Flat, FlatNegation
from quercus.schema import Schema


class Compiler:
    """Compiles the alternatives of one plan. With `key_holds`, no test is made of what the key found already says.

    Without `trees`, trees of joins are taken apart, and everything is searched depth first.
    """

    def __init__(
        self, tree: t.Tree, schema: Schema, buffers: list[BufferSpec], *, key_holds: bool, trees: bool = True
    ) -> None:
        w = tree.window
        self.program = Program(schema.ties == "arrival", w.kind == "count", _size(w), list(buffers))
        self.program.build_indexes, self.program.sift_from = exists.BUILD, sieves.FROM
        self.tree, self.key_holds, self.trees = tree, key_holds, trees
        self.code = Code(self.program, schema)

    def flat(
        self, f: Flat, outer: dict[str, Name], *, root: bool, first: str | None = None, variant: Variant | None = None
    ) -> int:
        """Compile an alternative; returns its number.

        `first` is bound before all others; a stream's `variant` says where a search starts.
        """
        spec, number = FlatSpec(root), len(self.program.flats)
        self.program.flats.append(spec)
        names = {b.var: self._name(b, root) for b in f.buffers}
        spec.leaves = [(b, names[b.var]) for b in f.buffers]
        seen = outer | names
        order = [v for v in binding_order(f, variant, root=root, first=first) if names[v].slots]
        ends = {first} if variant is None else {variant.pivot, *variant.rivals}
        nests = views.nests_of(f, order, frozenset(v for v in ends if v is not None))
        tree = joined(self.tree.root, f) if root and self.trees and not nests else None
        if tree is not None:
            add_nodes(spec, tree, f, names)
        if variant is not None and not names[variant.pivot].slots:
            spec.pivot = variant.pivot, self._slot(names[variant.pivot].buffer)
            order.insert(0, variant.pivot)
        plain = [v for v in order if not any(v in n.flat.variables for n in nests)]
        homes = self._levels(spec, f, names, plain, variant)
        all_windows = f.windows
        if nests:
            homes, f = views.add_levels(self, spec, f, names, outer, nests)
        spec.sets = [n.set for n in names.values() if n.set is not None and not n.slots]
        spec.counted = [n.set for n in names.values() if n.set is not None and n.slots]
        spec.slots = [s for n in names.values() for s in n.slots]
        windows = self._windows(spec, f, names)
        self._sets(spec, f, names)
        self._set_pairs(spec, f, names)
        for c in f.predicates:
            self._predicate(spec, c, names, seen, homes)
        for c in f.tests:
            spec.tests.append(self._test(c, seen))
        for g in f.negations:
            self._negation(spec, g, names, seen, homes)
        finish_nodes(spec, self.program, windows)
        sieves.add(spec, self.program)
        if variant is not None:
            here = [i for i, w in enumerate(all_windows) if w in f.windows]
            self._release(spec, variant, f, names, dict(zip(here, windows, strict=True)))
        if root:
            if not spec.joins:
                if variant is None or (variant.chain and variant.mode in ("last", "delayed")):
                    self._chain(spec, f, names)
                if variant is None:
                    spec.trail = self._trail(spec, f, names)
            inner = [j for j in spec.joins if j.children is not None]
            ordered = all(j.ordered for j in inner) if inner else spec.chain is not None
            spec.natural = (ordered and not spec.sets and not spec.counted) or spec.trail is not None
            spec.variables = [n.var for n in names.values() if n.set is None]
            spec.outs = [names[v].slots[0] for v in spec.variables]
            spec.set_variables = [n.var for n in names.values() if n.set is not None]
            spec.out_sets = [s for n in names.values() if (s := n.set) is not None]
        return number

    # slots and levels

    def _slot(self, buffer: int) -> int:
        self.program.slots.append(buffer)
        return len(self.program.slots) - 1

    def _name(self, b: t.Buffer, root: bool) -> Name:
        buffer = self.buffer_of(b)
        if not b.kleene or (not root and b.most is None):  # inside a negation, one element is enough
            return Name(b.var, buffer, (self._slot(buffer),), None, None)
        slots = tuple(self._slot(buffer) for _ in range(b.most)) if b.most is not None else ()
        element = self._slot(buffer)
        self.program.sets.append(SetSpec(element, b.least, list(slots)))
        return Name(b.var, buffer, slots, len(self.program.sets) - 1, element)

    def bound_name(self, b: t.Buffer) -> Name:
        """What holds a variable of a sub-query's result."""
        return self._name(b, root=False)

    def conditions(self, f: Flat, names: dict[str, Name], seen: dict[str, Name]) -> tuple[list[int], list[int]]:
        """What must hold of bound events, as predicates and negations."""
        spec = FlatSpec(root=False, slots=[s for n in names.values() for s in n.slots])
        for e in f.predicates:
            self._predicate(spec, e, names, seen | names, Homes(spec))
        spec.tests += [self._test(e, seen | names) for e in f.tests]
        for g in f.negations:
            self._negation(spec, g, names, seen | names, Homes(spec))
        return spec.tests, spec.negations

    def buffer_of(self, b: t.Buffer) -> int:
        return self.program.buffers.index(spec_of(b, self.tree))

    def holds(self, e: x.Expr) -> bool:
        """Whether an equality is what the found key says: then it holds inside every segment."""
        key = self.tree.key
        if key is None or self.tree.partition_by or not self.key_holds or not x.is_equality(e):
            return False
        assert isinstance(e, x.Compare)
        return e.left in key.columns and e.right in key.columns

    def _levels(
        self, spec: FlatSpec, f: Flat, names: dict[str, Name], order: list[str], variant: Variant | None
    ) -> Homes:
        """A level for each slot that no join binds; joins have bound theirs before."""
        types = {b.var: set(b.accepts) for b in f.buffers}
        bound: list[str] = list(spec.joins[-1].variables) if spec.joins else []
        for var in order:
            if var in bound:
                continue
            own = self._bound(spec, names[var])
            backwards = variant is not None and variant.mode in ("last", "delayed") and var == variant.pivot
            for i in reversed(range(len(own))) if backwards else range(len(own)):
                level = LevelSpec(own[i], -1 if backwards or i == 0 else own[i - 1])
                if backwards and i + 1 < len(own):
                    level.following = own[i + 1]
                for other in bound:
                    slots = self._bound(spec, names[other])
                    if (other, var) in f.before:
                        level.after.extend(slots)
                    elif (var, other) in f.before:
                        level.before.extend(slots)
                    elif types[var] & types[other]:
                        level.distinct.extend(slots)
                if variant is not None and var in variant.rivals:
                    pivot = self._bound(spec, names[variant.pivot])
                    if variant.mode == "first":
                        level.above.append(pivot[0])
                    else:
                        level.below.append(pivot[-1])
                spec.levels.append(level)
            bound.append(var)
        return Homes(spec)

    def _windows(self, spec: FlatSpec, f: Flat, names: dict[str, Name]) -> list[tuple[list[int], int]]:
        """Returns the numbers of the windows, each with the slots inside."""
        found = []
        bound = spec.joins[-1].slots if spec.joins else []
        for covered, w in f.windows:
            inside = [names[v] for v in names if v in covered]
            number = len(self.program.windows)
            slots = [s for n in inside for s in self._bound(spec, n)]
            sets = [n.set for n in inside if n.set is not None and not n.slots]
            self.program.windows.append(WindowSpec(w.kind == "count", _size(w), slots, sets))
            found.append((slots, number))
            before = [s for s in bound if s in slots]
            for level in spec.levels:
                if level.slot in slots:
                    if before:
                        level.reach.append((number, list(before)))
                    before.extend(level.slots or (level.slot,))
            for s in sets:
                self.program.sets[s].windows.append(number)
        return found

    @staticmethod
    def _bound(spec: FlatSpec, n: Name) -> tuple[int, ...]:
        """The slots that levels bind for a variable: none for a set, but for one that is the pivot."""
        return (spec.pivot[1],) if spec.pivot is not None and spec.pivot[0] == n.var else n.slots

    def _release(
        self, spec: FlatSpec, v: Variant, f: Flat, names: dict[str, Name], windows: dict[int, tuple[list[int], int]]
    ) -> None:
        """Which window a stream's search waits for, and what each match is asked. `windows`: by their numbers there."""
        if v.window >= 0:
            spec.due = windows[v.window][1]
        if not v.asks:
            return
        spec.held = HeldSpec(
            [s for name in v.sets if (s := names[name].set) is not None],
            {None: 0, "last": 1, "delayed": 2, "exact": 3, "any": 4}[v.ending],
            [windows[i][1] for i in v.earlier],
            [names[name].buffer for name in v.exact],
        )
        number = names[v.pivot].set
        if spec.pivot is None or number is None:
            return
        spec.held.pivot, own = number, self.program.sets[number]
        alone = len(own.windows) == len(spec.sets) == 1 and not (own.preds or own.distinct or spec.pairs)
        if v.mode == "first" and alone:
            after = [n for n in names.values() if (v.pivot, n.var) in f.before]
            last = {n.slots[-1] for n in after if n.slots and is_last(n.var, f)}
            spec.held.beyond = next((i for i, level in enumerate(spec.levels) if level.slot in last), -1)

    def _sets(self, spec: FlatSpec, f: Flat, names: dict[str, Name]) -> None:
        types = {b.var: set(b.accepts) for b in f.buffers}
        for n in names.values():
            if n.set is None or n.slots:
                continue
            own = self.program.sets[n.set]
            for other in names.values():
                if other.var == n.var:
                    continue
                slots = self._bound(spec, other)
                if (other.var, n.var) in f.before:
                    own.after.extend(slots)
                elif (n.var, other.var) in f.before:
                    own.before.extend(slots)
                elif types[n.var] & types[other.var]:
                    own.distinct.extend(slots)

    def _set_pairs(self, spec: FlatSpec, f: Flat, names: dict[str, Name]) -> None:
        types = {b.var: set(b.accepts) for b in f.buffers}
        open_ = [n for n in names.values() if n.set is not None and not n.slots]
        for i, a in enumerate(open_):
            for b in open_[i + 1 :]:
                assert a.set is not None
                assert b.set is not None
                if (a.var, b.var) in f.before:
                    spec.pairs.append((0, a.set, b.set, 0, 0))
                elif (b.var, a.var) in f.before:
                    spec.pairs.append((0, b.set, a.set, 0, 0))
                elif types[a.var] & types[b.var]:
                    spec.pairs.append((1, a.set, b.set, 0, 0))

    # predicates

    def _predicate(
        self, spec: FlatSpec, e: x.Expr, names: dict[str, Name], seen: dict[str, Name], homes: Homes
    ) -> None:
        if isinstance(e, x.Same):
            self._same(spec, e, names, seen, homes)
            return
        if self.holds(e):
            return
        named = x.variables(e)
        own = next((names[v] for v in named if v in names and names[v].set is not None), None)
        if own is not None and not own.slots:  # each element of an open set
            assert own.set is not None
            assert own.element is not None
            number = self.code.predicate(e, seen, {own.var: own.element}, over=-1)
            self.program.sets[own.set].preds.append(number)
            if spec.pivot is not None and spec.pivot[0] == own.var:
                number = self.code.predicate(e, seen, {own.var: spec.pivot[1]}, over=-1)
                self._place(spec, number, [self._bound(spec, names[v])[0] for v in named if v in names], homes)
            return
        each = {k.var for k in x.walk(e) if isinstance(k, x.Column)}  # a group function needs no single element
        outer = next((seen[v] for v in each if v not in names and seen[v].set is not None), None)
        for slot in own.slots if own is not None else (None,):
            chosen = {own.var: slot} if own is not None and slot is not None else {}
            over = -1
            if outer is not None:
                assert outer.set is not None
                assert outer.element is not None
                chosen, over = chosen | {outer.var: outer.element}, outer.set
            number = self.code.predicate(e, seen, chosen, over=over)
            used = [chosen.get(v, seen[v].slots[0] if seen[v].slots else -1) for v in named if v in names]
            self._place(spec, number, used, homes)

    def _place(self, spec: FlatSpec, number: int, slots: list[int], homes: Homes) -> None:
        home = homes.of(slots)
        (spec.tests if home is None else home.preds).append(number)

    def _same(self, spec: FlatSpec, e: x.Same, names: dict[str, Name], seen: dict[str, Name], homes: Homes) -> None:
        """Pair by pair:

        of slots as predicates, of elements and slots as element predicates, of elements as set pairs.
        """
        columns = list(e.columns)
        for i, a in enumerate(columns):
            for b in columns[i:]:
                if a.var in names or b.var in names:
                    self._same_pair(spec, a, b, names, seen, homes)

    def _same_pair(
        self,
        spec: FlatSpec,
        a: x.Column,
        b: x.Column,
        names: dict[str, Name],
        seen: dict[str, Name],
        homes: Homes,
    ) -> None:
        m, n = seen[a.var], seen[b.var]
        if a.var == b.var:
            if m.set is not None and not m.slots:
                kind, col, _ = self.code.pair_columns(a, m, a, m)
                spec.pairs.append((kind, m.set, m.set, col, col))
            for i, s in enumerate(m.slots):
                for u in m.slots[i + 1 :]:
                    number = self.code.equal_slots(a, m, s, b, n, u)
                    self._place(spec, number, [s, u], homes)
            return
        both_open = all(k.var in names and k.set is not None and not k.slots for k in (m, n))
        if both_open:
            kind, col_a, col_b = self.code.pair_columns(a, m, b, n)
            assert m.set is not None
            assert n.set is not None
            spec.pairs.append((kind, m.set, n.set, col_a, col_b))
            return
        for left in _slots_or_none(m, names):
            for right in _slots_or_none(n, names):
                self._equal_pair(spec, (a, m, left), (b, n, right), names, homes)

    def _equal_pair(
        self,
        spec: FlatSpec,
        left: tuple[x.Column, Name, int | None],
        right: tuple[x.Column, Name, int | None],
        names: dict[str, Name],
        homes: Homes,
    ) -> None:
        """One pair of columns, at least one of them this alternative's:

        a slot, an element of a set, or an outer name.
        """
        slots, over, inside = [], -1, None
        for _, n, s in (left, right):
            if s is not None:
                slots.append(s)
            elif n.set is not None:
                assert n.element is not None
                slots.append(n.element)
                if n.var in names and not n.slots:
                    inside = n.set
                else:
                    over = n.set
            else:
                slots.append(n.slots[0])
        number = self.code.equal_slots(left[0], left[1], slots[0], right[0], right[1], slots[1], over=over)
        if inside is not None:
            self.program.sets[inside].preds.append(number)
            if spec.pivot is not None and names[spec.pivot[0]].set == inside:
                self._equal_pivot(spec, left, right, slots, names, homes)
        else:
            self._place(spec, number, [s for s in slots if s in spec.slots], homes)

    def _equal_pivot(
        self,
        spec: FlatSpec,
        left: tuple[x.Column, Name, int | None],
        right: tuple[x.Column, Name, int | None],
        slots: list[int],
        names: dict[str, Name],
        homes: Homes,
    ) -> None:
        """What holds of each element holds of the first."""
        assert spec.pivot is not None
        element = names[spec.pivot[0]].element
        a, b = (spec.pivot[1] if s == element else s for s in slots)
        number = self.code.equal_slots(left[0], left[1], a, right[0], right[1], b)
        self._place(spec, number, [a, b], homes)

    def _test(self, e: x.Expr, seen: dict[str, Name]) -> int:
        """A test on the whole match: elements named beside a group function must all pass."""
        each = {k.var for k in x.walk(e) if isinstance(k, x.Column) and seen[k.var].set is not None}
        chosen, over = {}, -1
        for v in each:
            n = seen[v]
            assert n.set is not None
            assert n.element is not None
            chosen, over = {v: n.element}, n.set
        return self.code.predicate(e, seen, chosen, over=over)

    def _chain(self, spec: FlatSpec, f: Flat, names: dict[str, Name]) -> None:
        """Notice a SEQ of plain components in one window; negations that its neighbours decide become limits."""
        order = [b.var for b in f.buffers if names[b.var].slots]
        slots = [names[v].slots[0] for v in order]
        total = all((a, b) in f.before for i, a in enumerate(order) for b in order[i + 1 :])
        single = all(len(names[v].slots) == 1 for v in order)
        windows = {number for level in spec.levels for number, _ in level.reach}
        nested = any(level.sub >= 0 for level in spec.levels)
        if len(order) < 2 or not total or not single or len(windows) != 1 or spec.counted or nested:
            return
        (window,) = windows
        if set(self.program.windows[window].slots) != set(slots):
            return
        spec.chain = window
        for level in spec.levels:
            for number in list(level.negations):
                g = self.program.negations[number]
                where = exists.limited(g, slots, "latest")
                if where is not None and self.trees:
                    level.negations.remove(number)
                    level.negations.append(number)
                    spec.index_limits.append((where, number))
                where = exists.limited(g, slots, "next", "key", "jumps")
                if where is None:
                    continue
                level.negations.remove(number)
                buffers = exists.negated_sequence(self.program, g)
                if buffers is None:
                    spec.jump_limits.append((where, number))
                else:
                    spec.limits.append((where, buffers))
                    spec.pointed.append(number)

    def _trail(self, spec: FlatSpec, f: Flat, names: dict[str, Name]) -> int | None:
        """The set at the end of a SEQ of plain components, where nothing but order and one window binds it to them."""
        order = [b.var for b in f.buffers if names[b.var].slots]
        if len(spec.sets) != 1 or not order or spec.counted or spec.pairs or spec.negations or spec.tests:
            return None
        if (len(order) > 1 and spec.chain is None) or any(k.preds or k.negations for k in spec.levels):
            return None
        if spec.jump_limits:
            return None
        s, slots = self.program.sets[spec.sets[0]], [names[v].slots[0] for v in order]
        if s.preds or s.distinct or s.before or s.least != 1 or set(s.after) != set(slots):
            return None
        if len(s.windows) != 1 or (spec.chain is not None and s.windows != [spec.chain]):
            return None
        return spec.sets[0] if set(self.program.windows[s.windows[0]].slots) == set(slots) else None

    # negations

    def _negation(
        self, spec: FlatSpec, g: FlatNegation, names: dict[str, Name], seen: dict[str, Name], homes: Homes
    ) -> None:
        scope = g.scope
        types = {name for b in g.bodies for leaf in b.buffers for name in leaf.accepts}
        excluded = [n for v in g.excludes if types & set(self.program.buffers[(n := seen[v]).buffer].accepts)]
        barred = {n.buffer for n in excluded}
        ways = [
            views.lower(self, b, seen, g, barred=bool(excluded))
            if g.strategy in views.VIEWS
            else exists.lower(self, b, seen, g.strategy, barred)
            for b in g.bodies
        ]
        number = len(self.program.negations)
        self.program.negations.append(
            NegationSpec(
                1 if scope.left else 0,
                {None: 0, "window": 1, "end": 2}[scope.right],
                [_group(k, seen) for k in scope.after],
                [_group(k, seen) for k in scope.before],
                [s for n in excluded if n.set is None for s in n.slots],
                [n.set for n in excluded if n.set is not None],
                ways,
                g.source,
            )
        )
        named = {v for k in (*scope.after, *scope.before) for v in k} | set(g.excludes) | _outer_names(g)
        needs = {v for v in named if v in seen}
        late = scope.left or scope.right or any(seen[v].set is not None for v in needs)
        if late or not spec.root:
            spec.negations.append(number)
        else:
            home = homes.of(s for v in needs if v in names for s in names[v].slots)
            (spec.negations if home is None else home.negations).append(number)


def _slots_or_none(n: Name, names: dict[str, Name]) -> tuple[int | None, ...]:
    """The slots of a variable of this alternative; None for a set's elements, or a name from outside."""
    return n.slots if n.slots and n.var in names else (None,)


def _size(w: p.Window) -> int:
    """The largest difference inside a window: c consecutive events are c - 1 apart."""
    return w.size - 1 if w.kind == "count" else w.size


def _group(variables: tuple[str, ...], seen: dict[str, Name]) -> tuple[list[int], list[int]]:
    there = [seen[v] for v in variables if v in seen]
    return [s for n in there if n.set is None for s in n.slots], [n.set for n in there if n.set is not None]


def _outer_names(g: FlatNegation) -> set[str]:
    """Variables of the match that a negation's bodies name, at any depth."""
    named: set[str] = set()
    for body in g.bodies:
        inside = {v for e in (*body.predicates, *body.tests) for v in x.variables(e)}
        for inner in body.negations:
            inside |= _outer_names(inner) | {v for k in (*inner.scope.after, *inner.scope.before) for v in k}
        named |= inside - body.variables
    return named
