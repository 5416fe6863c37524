// What a run found: a table in pages, a timeline, files to take away.
import { byId, make } from '../show/dom.js';
import { paged } from '../show/table.js';
import { timeline } from '../show/timeline.js';
import { ask } from './ask.js';

const n = (v) => Number(v).toLocaleString('en-US');
const TABS = ['table', 'timeline'];

export function tabs() {
  TABS.forEach((name) => byId(`tab-${name}`).addEventListener('click', () => open(name)));
  byId('tabs').addEventListener('keydown', (e) => {
    if (e.key !== 'ArrowRight' && e.key !== 'ArrowLeft') return;
    const other = TABS.find((name) => byId(name).hidden);
    open(other);
    byId(`tab-${other}`).focus();
  });
}

function open(name) {
  TABS.forEach((other) => {
    byId(other).hidden = other !== name;
    byId(`tab-${other}`).setAttribute('aria-selected', String(other === name));
    byId(`tab-${other}`).tabIndex = other === name ? 0 : -1;
  });
}

/** Nothing yet, and why. */
export function cleared(message) {
  byId('found').textContent = message;
  ['tabs', 'downloads', 'why', 'timeline'].forEach((id) => { byId(id).hidden = true; });
  byId('table').hidden = false;
  byId('table').replaceChildren();
}

/** The answer of a run. */
export async function found(result) {
  const { summary, table, job, matches, warnings, why } = result;
  cleared('');
  const what = summary.groups === null ? '' : `${n(summary.groups)} ${summary.groups === 1 ? 'group' : 'groups'} of `;
  const time = summary.milliseconds === null ? '' : ` in ${n(summary.milliseconds)} ms`;
  byId('found').textContent = summary.matches === null ? warnings[warnings.length - 1]
    : `${what}${n(summary.matches)} ${summary.matches === '1' ? 'match' : 'matches'} in ${n(summary.events)} events${time}`;
  byId('why').hidden = !why;
  byId('why').textContent = why ?? '';
  byId('downloads').hidden = false;
  byId('downloads').replaceChildren(...(summary.matches === null ? [] : ['csv', 'jsonl']).concat('html').map((kind) =>
    make('a', { href: `download/${job}.${kind}`, download: '' }, { csv: 'CSV', jsonl: 'JSON Lines', html: 'Report' }[kind])));
  byId('tabs').hidden = !(table.total || matches.matches.length);
  if (byId('tabs').hidden) return;
  if (matches.matches.length) {
    open('timeline'); // it is drawn where it can be measured
    timeline(byId('timeline'), matches);
  } else {
    byId('timeline').replaceChildren(make('p', { class: 'soft' }, 'No matches to draw.'));
  }
  open(table.total ? 'table' : 'timeline');
  await paged(byId('table'), table.columns, table.total, async (from, count) =>
    (from === 0 ? table.rows : (await ask('page', { job, from, count })).rows), 20);
}
