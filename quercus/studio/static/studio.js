// The studio: keeps the query, the chosen file and shape, and asks for what follows from them.
import { byId, make } from '../show/dom.js';
import { ask, latest } from './ask.js';
import { editor } from './editor.js';
import { beside, planted, shapes, wilted } from './plan.js';
import { cleared, found, tabs } from './results.js';

const state = { file: 0, shape: 'auto', shapes: [], costs: {}, job: null };

function where() {
  return { file: state.file, time: byId('time').value, type: byId('type').value, unit: byId('unit').value };
}

function asked() {
  return { ...where(), query: writing.value, shape: state.shape, nested: byId('nested').value };
}

// ---- checking, as one types
const check = latest(async (current) => {
  try {
    const answer = await ask('check', asked());
    if (!current()) return;
    if (answer.types) writing.known(answer.types);
    writing.said(answer.error);
    byId('status').textContent = answer.error ? `error ${answer.error.code}` : 'no errors';
    if (answer.error) { wilted(); return; }
    state.costs = answer.costs;
    planned(answer.plan);
    byId('plan-note').textContent = 'with estimates';
  } catch (e) {
    if (current()) trouble(e);
  }
}, 150);

const writing = editor(() => { byId('status').textContent = '…'; check(); }, where);

function planned(plan) {
  shapes(state.shapes, state.shape, state.costs, chosen);
  planted(plan.tree, plan.nodes);
  beside(plan);
  byId('warnings').hidden = !plan.warnings.length;
  byId('warnings').replaceChildren(...plan.warnings.map((w) => make('li', {}, w)));
}

function chosen(shape) {
  state.shape = shape;
  shapes(state.shapes, shape, state.costs, chosen);
  check();
}

function trouble(e) {
  writing.said({ message: e.message, line: null, hint: null, span: null });
  byId('status').textContent = 'not answered';
  wilted();
}

// ---- running
async function run() {
  writing.hide();
  const limits = { matches: Math.trunc(Number(byId('matches').value)), seconds: Math.trunc(Number(byId('seconds').value)) };
  busy(true);
  cleared('Running …');
  try {
    let answer = await ask('run', { ...asked(), ...limits });
    if (answer.error) { writing.said(answer.error); cleared('The query has an error.'); return; }
    state.job = answer.job;
    for (let wait = 40; answer.state === 'running'; wait = Math.min(wait * 1.5, 500)) {
      await new Promise((done) => { setTimeout(done, wait); });
      answer = await ask('poll', { job: state.job });
      if (answer.state === 'running') byId('found').textContent = `Running, ${answer.seconds.toFixed(0)} s`;
    }
    if (answer.state === 'done') {
      planted(answer.tree, answer.nodes);
      byId('plan-note').textContent = answer.summary.matches === null ? 'with estimates' : 'as it ran, with what each node did';
      await found(answer);
      byId('results').scrollIntoView({ block: 'nearest' });
    } else {
      cleared(answer.state === 'cancelled' ? 'Cancelled.' : `Failed: ${answer.failed}`);
    }
  } catch (e) {
    cleared(e.message);
  } finally {
    busy(false);
  }
}

function busy(is) {
  byId('run').disabled = is;
  byId('cancel').hidden = !is;
  byId('results').setAttribute('aria-busy', String(is));
}

async function cancel() {
  if (state.job !== null) await ask('cancel', { job: state.job }).catch(() => {});
}

// ---- files
async function opened(file) {
  state.file = file;
  cleared('Run the query to see what it finds.');
  const facts = await ask('columns', { file });
  const fill = (id, guess) => byId(id).replaceChildren(...facts.columns.map((c) => make('option', { value: c.name, selected: c.name === guess }, c.name)));
  fill('time', facts.time);
  fill('type', facts.type);
  byId('unit').value = facts.unit;
  state.columns = facts.columns;
  units();
}

function units() {
  const kind = state.columns.find((c) => c.name === byId('time').value)?.type ?? '';
  byId('unit-label').hidden = kind.startsWith('timestamp') || kind.startsWith('date');
}

async function begin() {
  tabs();
  const given = await ask('files');
  state.shapes = given.shapes;
  byId('file').append(...given.files.map((f) => make('option', { value: f.file, title: f.path }, f.name)));
  byId('nested').append(...given.nested.map((name) => make('option', { value: name }, name)));
  byId('file').addEventListener('change', async () => { await opened(Number(byId('file').value)).catch(trouble); check(); });
  ['time', 'type', 'unit', 'nested'].forEach((id) => byId(id).addEventListener('change', () => { units(); check(); }));
  byId('run').addEventListener('click', run);
  byId('cancel').addEventListener('click', cancel);
  document.addEventListener('keydown', (e) => {
    if (e.key === 'Enter' && (e.ctrlKey || e.metaKey) && !byId('run').disabled) { e.preventDefault(); run(); }
  });
  await opened(0);
  const { types } = await ask('check', { ...asked(), query: '' });
  const two = types.slice(0, 2).map((t) => (/^[\p{L}_][\p{L}\p{N}_]*$/u.test(t) ? t : `'${t.replaceAll("'", "''")}'`));
  if (!writing.value) writing.value = two.length === 2 ? `PATTERN SEQ(${two[0]} a, ${two[1]} b)\nWITHIN 10 min` : 'PATTERN ';
  byId('text').focus();
  check();
}

begin().catch(trouble);
