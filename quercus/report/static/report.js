// The report: fills the sections of body.html from the data that stands in the page.
import { byId, make, shown } from '../../show/static/dom.js';
import { coloured } from '../../show/static/query.js';
import { movable, tellIn, toolbar } from '../../show/static/tree.js';
import { timeline } from '../../show/static/timeline.js';
import { grid, paged } from '../../show/static/table.js';

const data = JSON.parse(byId('data').textContent);
const types = new Set(data.types);
const n = (v) => Number(v).toLocaleString('en-US');
const percent = (part) => `${part >= 0.1 || part === 0 ? Math.round(part * 100) : (part * 100).toPrecision(2)} %`;
const big = (text) => (text === null ? 'stopped' : text.length > 15 ? `${text[0]}.${text.slice(1, 3)}e${text.length - 1}` : n(text));

function summary() {
  const { matches, events, groups, milliseconds, made } = data.summary;
  const figures = [[big(matches), matches === '1' ? 'match' : 'matches'], [n(events), events === 1 ? 'event' : 'events']];
  if (groups !== null) figures.push([n(groups), groups === 1 ? 'group' : 'groups']);
  if (milliseconds !== null) figures.push([`${n(milliseconds)} ms`, 'on one thread']);
  byId('summary').append(...figures.map(([value, name]) => make('div', { class: 'figure' }, make('b', {}, value), make('span', {}, name))));
  byId('source').textContent = data.events;
  byId('made').textContent = made;
}

function query() {
  byId('text').append(...coloured(data.query, types));
  byId('logical').append(...coloured(data.logical.join('\n'), types));
  if (data.why) {
    byId('why').hidden = false;
    byId('why').querySelector('pre').textContent = data.why;
  }
  if (!data.warnings.length) return;
  byId('warnings').hidden = false;
  byId('warnings').querySelector('ul').append(...data.warnings.map((w) => make('li', {}, w)));
}

function plan() {
  const tree = movable(byId('tree'), tellIn('node', data.nodes));
  byId('tools').append(...toolbar(tree));
  byId('facts').append(pairs(data.facts));
  const most = Math.max(...data.alternatives.map((a) => a.cost), 1e-9);
  byId('alternatives').append(make('div', { class: 'scroll' }, make('table', {},
    make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, 'shape'), make('th', { scope: 'col', class: 'num' }, 'cost'), make('th', { scope: 'col' }, make('span', { class: 'hush' }, 'compared')))),
    make('tbody', {}, data.alternatives.map((a) => make('tr', { class: a.chosen ? 'chosen' : null },
      make('td', { class: 'mono' }, a.shape), make('td', { class: 'num' }, n(Math.round(a.cost))), make('td', {}, share(a.cost / most))))))));
  const more = data.considered - data.alternatives.length;
  if (more > 0) byId('alternatives').append(make('p', { class: 'soft small' }, `${n(more)} more were considered.`));
}

function pairs(facts) {
  return make('table', {}, make('tbody', {}, facts.map(([name, value]) => make('tr', {}, make('th', { scope: 'row' }, name), make('td', {}, value)))));
}

function share(part) {
  return make('span', { class: 'track' }, make('span', { class: 'share', style: { width: `${Math.max(part * 100, 0.5)}%` } }));
}

function matches() {
  if (data.matches.sampled) {
    byId('sampled').hidden = false;
    byId('sampled').textContent = 'There are more matches than are listed: these are among the first.';
  }
  if (data.matches.matches.length) timeline(byId('timeline'), data.matches);
  else byId('timeline').append(make('p', { class: 'soft' }, 'No match was found.'));
}

function groups() {
  const found = data.groups?.rows.length ? data.groups : null;
  byId('to-groups').hidden = !found;
  if (!found) return;
  byId('groups').hidden = false;
  byId('h-groups').textContent = found.title;
  paged(byId('group-table'), found.columns, found.rows.length, (from, count) => found.rows.slice(from, from + count), 15);
  if (found.total > found.rows.length) byId('group-note').textContent = `The first ${n(found.rows.length)} of ${n(found.total)} are here.`;
}

function statistics() {
  const s = data.statistics;
  if (data.summary.events) byId('span').textContent = `From ${shown(s.first)} to ${shown(s.last)}.`;
  const often = Math.max(...s.types.map((t) => t.events), 0) / s.seconds;
  const [per, length] = [['second', 1], ['minute', 60], ['hour', 3600], ['day', 86400]].find(([, l]) => often * l >= 1) ?? ['day', 86400];
  const rate = (events) => (s.seconds > 0 ? +((events / s.seconds) * length).toPrecision(3) : null);
  byId('types').append(make('div', { class: 'scroll' }, make('table', {},
    make('thead', {}, make('tr', {}, ['type', 'events', `per ${per}`, 'share'].map((h, i) => make('th', { scope: 'col', class: i && i < 3 ? 'num' : null }, h)))),
    make('tbody', {}, s.types.map((t) => make('tr', {}, make('td', {}, t.type), make('td', { class: 'num' }, n(t.events)), make('td', { class: 'num' }, rate(t.events) === null ? '' : shown(rate(t.events))), make('td', { title: percent(t.share) }, share(t.share))))))));
  if (s.more) byId('types').append(make('p', { class: 'soft small' }, `${n(s.more)} more types.`));
  byId('run').append(data.run.length ? pairs(data.run) : make('p', { class: 'soft' }, 'The run was stopped.'));
  if (data.conditions.length) {
    byId('conditions').append(make('h3', {}, 'Selectivity'), make('div', { class: 'scroll' }, make('table', {},
      make('thead', {}, make('tr', {}, ['condition', 'passed', 'of', 'part'].map((h, i) => make('th', { scope: 'col', class: i ? 'num' : null }, h)))),
      make('tbody', {}, data.conditions.map((c) => make('tr', {}, make('td', { class: 'mono' }, c.node), make('td', { class: 'num' }, n(c.passed)), make('td', { class: 'num' }, n(c.of)), make('td', { class: 'num' }, c.of ? percent(c.passed / c.of) : '')))))));
  }
  if (s.attributes.length) {
    byId('attributes').append(make('h3', {}, 'Attributes'), grid(['attribute', 'type', 'distinct', 'nulls', 'least', 'greatest'], s.attributes.map((a) => [a.name, a.type, a.distinct, a.nulls, a.min ?? '', a.max ?? ''])));
  }
}

function rules() {
  const lines = (kind, sign, list) => list.map((line) => make('pre', { class: kind }, `${sign} `, ...coloured(line, types)));
  byId('trace').append(...data.rules.map((r) => make('li', {},
    make('b', { class: 'mono' }, r.rule), make('div', { class: 'law' }, r.law),
    lines('gone', '−', r.before), lines('came', '+', r.after), r.finding ? make('pre', {}, r.finding) : null)));
  if (!data.rules.length) byId('rules').append(make('p', { class: 'soft' }, 'None fired.'));
}

summary();
query();
plan();
matches();
groups();
statistics();
rules();
