// Tables in pages, from rows at hand or from whoever has them.
import { make, shown } from './dom.js';

/** A table of columns and rows; numbers stand right. */
export function grid(columns, rows) {
  const numeric = columns.map((_, i) => rows.some((r) => typeof r[i] === 'number') && rows.every((r) => r[i] === null || typeof r[i] === 'number'));
  const cell = (value, i) => make('td', { class: numeric[i] ? 'num' : null }, content(value));
  return make('div', { class: 'scroll' }, make('table', { class: 'fits' },
    make('thead', {}, make('tr', {}, columns.map((c, i) => make('th', { scope: 'col', class: numeric[i] ? 'num' : null }, c)))),
    make('tbody', {}, rows.map((r) => make('tr', {}, r.map(cell))))));
}

/** A value; the events of a set one below the other. */
function content(value) {
  if (value === null) return make('span', { class: 'null' }, 'null');
  const set = Array.isArray(value) && value.some((v) => v !== null && typeof v === 'object');
  return set ? value.map((v) => make('div', {}, shown(v))) : shown(value);
}

/** A table in pages: `fetch(from, count)` gives rows, at once or later; `total` says how many there are. */
export function paged(place, columns, total, fetch, size = 20) {
  let first = 0;
  const said = make('span', { class: 'soft small', role: 'status' });
  const turn = (label, name, to) => make('button', { type: 'button', 'aria-label': name, onclick: () => go(to()) }, label);
  const last = () => Math.max(0, Math.floor((total - 1) / size) * size);
  const back = [turn('«', 'First page', () => 0), turn('‹', 'Page before', () => first - size)];
  const on = [turn('›', 'Next page', () => first + size), turn('»', 'Last page', last)];
  const body = make('div', {});
  const bar = make('div', { class: 'bar pages' }, back, said, on);
  place.replaceChildren(body, bar);
  bar.hidden = total <= size;
  async function go(to) {
    first = Math.min(Math.max(to, 0), last());
    const rows = await fetch(first, size);
    body.replaceChildren(grid(columns, rows));
    const n = (v) => v.toLocaleString('en-US');
    said.textContent = total ? `${n(first + 1)}–${n(Math.min(first + size, total))} of ${n(total)}` : 'none';
    back.forEach((b) => { b.disabled = first === 0; });
    on.forEach((b) => { b.disabled = first >= last(); });
  }
  return go(0);
}
