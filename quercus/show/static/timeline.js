// Matches over time: one row a match, a mark an event, a band a set; zoomed, moved, grouped, filtered.
import { clock } from './clock.js';
import { draw, make, shown } from './dom.js';
import { dragged } from './dragged.js';
import { filter } from './filter.js';

const ROW = 24, AXIS = 26, GUTTER = 118, NARROW = 64, EDGE = 14, COLOURS = 8;
const SHAPES = [
  (x, y) => ['circle', { cx: x, cy: y, r: 5 }],
  (x, y) => ['rect', { x: x - 4.5, y: y - 4.5, width: 9, height: 9, rx: 1.5 }],
  (x, y) => ['path', { d: `M${x} ${y - 6}L${x + 6} ${y + 5}L${x - 6} ${y + 5}z` }],
  (x, y) => ['path', { d: `M${x} ${y - 6.5}L${x + 6.5} ${y}L${x} ${y + 6.5}L${x - 6.5} ${y}z` }],
];

/** A timeline of `data` (quercus/show/found.py) in the element `place`. */
export function timeline(place, data) {
  const { variables, attributes, events, matches } = data;
  const time = clock(data.clock);
  const names = variables.map((v) => v.name);
  const columns = new Map(attributes.map((name, i) => [name, events.values[i]]));
  const read = {
    all: (e) => [events.type[e], time.text(events.at[e]), ...events.values.map((c) => c[e])],
    one: (e, attr) => attr === 'type' ? events.type[e] : attr === 'ts' ? time.text(events.at[e]) : attr === 'row' ? events.row[e] : columns.get(attr)?.[e],
  };
  const spans = matches.map((m) => {
    const at = m.flat().filter((e) => e !== null).map((e) => events.at[e]);
    return at.length ? [Math.min(...at), Math.max(...at)] : [0, 0];
  });
  const whole = spans.length ? [Math.min(...spans.map((s) => s[0])), Math.max(...spans.map((s) => s[1]))] : [0, 1];
  if (whole[1] === whole[0]) { whole[0] -= 1; whole[1] += 1; }
  const state = { from: whole[0], to: whole[1], by: data.key ?? '', text: '', inView: false, on: null, lines: [] };
  const hidden = new Set();

  // ---- what is around the picture
  const search = make('input', { type: 'search', class: 'grow', placeholder: 'Filter: 9   id=9   o.price>=3   type=Wash', 'aria-label': 'Filter matches by values', oninput: () => { state.text = search.value; listed(); } });
  const group = make('select', { 'aria-label': 'Group matches by', onchange: () => { state.by = group.value; listed(); } },
    make('option', { value: '' }, 'nothing'), attributes.map((a) => make('option', { value: a, selected: a === data.key }, a)));
  const inView = make('input', { type: 'checkbox', onchange: () => { state.inView = inView.checked; listed(); } });
  const button = (label, name, act) => make('button', { type: 'button', title: name, 'aria-label': name, onclick: act }, label);
  const said = make('p', { class: 'soft small', role: 'status' });
  const legend = make('div', { class: 'legend' }, variables.map((v, i) =>
    make('button', { type: 'button', class: 'key', 'aria-pressed': 'true', title: `Show or hide ${v.name}`, onclick: (e) => toggled(i, e.currentTarget) },
      draw('svg', { width: 14, height: 14, viewBox: '0 0 14 14', 'aria-hidden': 'true', class: `v${i % COLOURS}` }, mark(i, 7, 7)),
      v.name === v.type ? `${v.name}${v.sign}` : `${v.type}${v.sign} ${v.name}`)));
  const svg = draw('svg', { class: 'rows', 'aria-hidden': 'true' });
  const inner = make('div', { class: 'all' }, svg);
  const frame = make('div', { class: 'frame', tabindex: 0, role: 'group', 'aria-label': 'Matches over time: arrow keys choose a match, plus and minus zoom' }, inner);
  const axis = draw('svg', { class: 'axis', height: AXIS, width: '100%', 'aria-hidden': 'true' });
  const detail = make('div', { class: 'detail', 'aria-live': 'polite' });
  place.classList.add('timeline');
  place.replaceChildren(
    make('div', { class: 'bar' }, search, make('label', {}, 'group by ', group), make('label', {}, inView, ' in view only'),
      make('span', { class: 'bar push' }, button('+', 'Zoom in', () => zoom(1.5)), button('−', 'Zoom out', () => zoom(1 / 1.5)), button('Fit', 'All of the time', () => reach(...whole)))),
    legend, axis, frame, said, detail,
  );

  // ---- which matches
  function listed() {
    const test = filter(state.text, names, read);
    const seen = ([a, b]) => !state.inView || (b >= state.from && a <= state.to);
    const kept = matches.map((m, i) => i).filter((i) => seen(spans[i]) && test(matches[i]));
    const first = (i) => matches[i].flat().find((e) => e !== null);
    const value = (i) => { const e = first(i); return e === undefined ? null : read.one(e, state.by); };
    state.lines = [];
    if (state.by) {
      const groups = new Map();
      for (const i of kept) {
        const key = value(i);
        if (!groups.has(key)) groups.set(key, []);
        groups.get(key).push(i);
      }
      for (const [key, members] of groups) {
        if (members.length > 1) state.lines.push({ key, count: members.length });
        members.forEach((i) => state.lines.push({ match: i, label: members.length > 1 ? `#${i + 1}` : `${state.by} ${key === null ? 'null' : key}` }));
      }
    } else {
      kept.forEach((i) => state.lines.push({ match: i, label: `#${i + 1}` }));
    }
    const parts = [`${kept.length.toLocaleString('en-US')} of ${matches.length.toLocaleString('en-US')} matches shown`];
    if (data.total > matches.length) parts.push(`the first ${matches.length.toLocaleString('en-US')} of ${data.total.toLocaleString('en-US')} found are here`);
    if (data.cut) parts.push(`${data.cut.toLocaleString('en-US')} elements of long sets are left out`);
    said.textContent = `${parts.join('; ')}.`;
    if (state.on !== null && !kept.includes(state.on)) choose(null);
    inner.style.height = `${Math.max(state.lines.length * ROW, ROW)}px`;
    paint();
  }

  // ---- the picture
  function paint() {
    const width = frame.clientWidth;
    if (!width) return;
    const left = width < 520 ? NARROW : GUTTER;
    const x = (at) => left + EDGE + ((at - state.from) / (state.to - state.from)) * (width - left - 2 * EDGE);
    const top = frame.scrollTop, height = frame.clientHeight;
    const { step, at } = time.ticks(state.from, state.to, Math.max(2, (width - left) / 110));
    const lines = [];
    axis.replaceChildren(...at.map((t) => draw('text', { x: x(t), y: 16 }, time.tick(t, step))));
    svg.setAttribute('width', width);
    svg.setAttribute('height', Math.max(height, 1));
    svg.style.top = `${top}px`;
    at.forEach((t) => lines.push(draw('line', { class: 'grid', x1: x(t), x2: x(t), y1: 0, y2: height })));
    const from = Math.max(0, Math.floor(top / ROW)), to = Math.min(state.lines.length, Math.ceil((top + height) / ROW) + 1);
    for (let n = from; n < to; n += 1) {
      const y = n * ROW - top + ROW / 2, line = state.lines[n];
      if (line.match === undefined) {
        lines.push(draw('text', { class: 'group', x: 8, y: y + 4 }, `${state.by} ${line.key === null ? 'null' : shown(line.key)} · ${line.count} matches`));
        continue;
      }
      lines.push(row(line, y, x, width, left));
    }
    svg.replaceChildren(...lines);
  }

  function row(line, y, x, width, left) {
    const match = matches[line.match];
    const [a, b] = spans[line.match];
    const ink = clamp(x, left, width);
    const on = line.match === state.on;
    const parts = [
      draw('rect', { class: 'back', x: 0, y: y - ROW / 2, width, height: ROW }),
      draw('line', { class: 'span', x1: ink(a), x2: ink(b), y1: y, y2: y }),
    ];
    match.forEach((bound, v) => {
      if (bound === null || hidden.has(v)) return;
      const places = (Array.isArray(bound) ? bound : [bound]).map((e) => x(events.at[e])).filter((p) => p >= left && p <= width);
      const seen = ([s, t]) => events.at[t] >= state.from && events.at[s] <= state.to;
      if (Array.isArray(bound) && bound.length > 1 && seen([bound[0], bound[bound.length - 1]])) {
        const [s, t] = [ink(events.at[bound[0]]), ink(events.at[bound[bound.length - 1]])];
        parts.push(draw('rect', { class: `run v${v % COLOURS}`, x: s - 6, y: y - 7, width: t - s + 12, height: 14, rx: 7 }));
      }
      places.forEach((p) => parts.push(draw('g', { class: `mark v${v % COLOURS}` }, mark(v, p, y))));
    });
    if (b < state.from) parts.push(draw('text', { class: 'away', x: left + 4, y: y + 4 }, '‹'));
    if (a > state.to) parts.push(draw('text', { class: 'away', x: width - 12, y: y + 4 }, '›'));
    parts.push(draw('rect', { class: 'gutter', x: 0, y: y - ROW / 2, width: left, height: ROW }),
      draw('text', { class: 'label', x: 8, y: y + 4 }, short(line.label, left < GUTTER ? 8 : 15)));
    return draw('g', { class: on ? 'match on' : 'match', onclick: () => choose(line.match) }, parts);
  }

  // ---- moving in it
  function reach(from, to) {
    const least = Math.max((whole[1] - whole[0]) / 1e6, 1e-3);
    const most = (whole[1] - whole[0]) * 1.5;
    const middle = (from + to) / 2, length = Math.min(Math.max(to - from, least), most);
    const centre = Math.min(Math.max(middle, whole[0]), whole[1]);
    state.from = centre - length / 2;
    state.to = centre + length / 2;
    if (state.inView) listed(); else paint();
  }
  function zoom(by, clientX) {
    const box = frame.getBoundingClientRect();
    const left = box.width < 520 ? NARROW : GUTTER;
    const part = clientX === undefined ? 0.5 : Math.min(Math.max((clientX - box.left - left - EDGE) / (box.width - left - 2 * EDGE), 0), 1);
    const length = state.to - state.from, at = state.from + length * part;
    reach(at - (length / by) * part, at + (length / by) * (1 - part));
  }
  function move(dx, dy) {
    const left = frame.clientWidth < 520 ? NARROW : GUTTER;
    const by = (dx / (frame.clientWidth - left - 2 * EDGE)) * (state.to - state.from);
    if (dx) reach(state.from - by, state.to - by);
    if (dy) frame.scrollTop -= dy;
  }
  dragged(frame, move, (by, x) => zoom(by, x));
  frame.addEventListener('scroll', paint);
  frame.addEventListener('wheel', (e) => {
    if (!e.ctrlKey && !e.metaKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY)) return;
    e.preventDefault();
    if (e.ctrlKey || e.metaKey) zoom(Math.exp(-e.deltaY / 250), e.clientX); else move(-e.deltaX, 0);
  }, { passive: false });
  frame.addEventListener('keydown', (e) => {
    const length = state.to - state.from;
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') step(e.key === 'ArrowDown' ? 1 : -1);
    else if (e.key === 'ArrowLeft') reach(state.from - length / 8, state.to - length / 8);
    else if (e.key === 'ArrowRight') reach(state.from + length / 8, state.to + length / 8);
    else if (e.key === '+' || e.key === '=') zoom(1.5);
    else if (e.key === '-') zoom(1 / 1.5);
    else if (e.key === '0') reach(...whole);
    else if (e.key === 'Escape') choose(null);
    else return;
    e.preventDefault();
  });
  function step(by) {
    let n = state.lines.findIndex((l) => l.match === state.on && state.on !== null);
    n = n < 0 && by < 0 ? state.lines.length : n;
    do n += by; while (state.lines[n] && state.lines[n].match === undefined);
    if (!state.lines[n]) return;
    const y = n * ROW;
    if (y < frame.scrollTop) frame.scrollTop = y;
    if (y + ROW > frame.scrollTop + frame.clientHeight) frame.scrollTop = y + ROW - frame.clientHeight;
    choose(state.lines[n].match);
  }
  function toggled(v, key) {
    if (hidden.has(v)) hidden.delete(v); else hidden.add(v);
    key.setAttribute('aria-pressed', String(!hidden.has(v)));
    paint();
  }

  // ---- one match
  function choose(i) {
    state.on = i;
    detail.replaceChildren(...(i === null ? [] : one(i)));
    paint();
  }
  function one(i) {
    const lines = matches[i].flatMap((bound, v) => (Array.isArray(bound) ? bound : bound === null ? [] : [bound]).map((e) => [v, e]));
    const used = attributes.map((name, k) => [name, k]).filter(([, k]) => lines.some(([, e]) => events.values[k][e] !== null));
    const head = ['variable', 'type', 'time', 'row', ...used.map(([name]) => name)];
    return [
      make('h3', {}, `Match #${i + 1}`),
      make('div', { class: 'scroll' }, make('table', {},
        make('thead', {}, make('tr', {}, head.map((h) => make('th', { scope: 'col' }, h)))),
        make('tbody', {}, lines.slice(0, 200).map(([v, e]) => make('tr', {},
          make('td', {}, make('span', { class: `dot v${v % COLOURS}` }), names[v]), make('td', {}, shown(events.type[e])), make('td', { class: 'num-left' }, time.text(events.at[e])), make('td', {}, String(events.row[e])),
          used.map(([, k]) => make('td', {}, shown(events.values[k][e])))))))),
    ];
  }

  new ResizeObserver(paint).observe(frame);
  listed();
  return { reach, choose, state };
}

function mark(v, x, y) {
  return draw(...SHAPES[Math.floor(v / COLOURS + v) % SHAPES.length](x, y));
}

function clamp(x, left, width) {
  return (at) => Math.min(Math.max(x(at), left), width);
}

function short(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
