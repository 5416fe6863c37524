// The plan of the query as it stands: its tree, what each shape would cost, and what else was considered.
import { byId, make } from '../show/dom.js';
import { movable, tellIn, toolbar } from '../show/tree.js';

const figure = (v) => (v >= 1e6 ? v.toExponential(2) : Math.round(v).toLocaleString('en-US'));

const ratio = (v) => (v >= 10 ? figure(v) : v.toPrecision(2));

/** A tree from the studio's SVG: read as XML, so that nothing in it can run. */
export function planted(svg, nodes) {
  const frame = byId('tree');
  const read = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
  const fresh = frame.cloneNode(false); // without the listeners of the tree before
  fresh.append(document.importNode(read, true));
  frame.replaceWith(fresh);
  fresh.classList.remove('stale');
  byId('tools').replaceChildren(...toolbar(movable(fresh, tellIn('node', nodes))));
}

export function wilted() {
  byId('tree').classList.add('stale');
}

/** The buttons for shapes, each with its cost; `choose(shape)` when one is taken. They stay the same elements. */
export function shapes(names, chosen, costs, choose) {
  const place = byId('shapes');
  if (!place.children.length) {
    place.append(...names.map((name) => make('button', { type: 'button', role: 'radio', 'data-shape': name, onclick: () => choose(name) }, name, make('small', {}))));
    place.addEventListener('keydown', (e) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
      if (!by) return;
      e.preventDefault();
      const next = place.children[([...place.children].indexOf(document.activeElement) + by + names.length) % names.length];
      next.focus();
      next.click();
    });
  }
  const least = Math.min(...Object.values(costs));
  for (const button of place.children) {
    const name = button.dataset.shape, cost = costs[name];
    button.setAttribute('aria-checked', String(name === chosen));
    button.tabIndex = name === chosen ? 0 : -1;
    const times = name !== 'auto' && cost > least * 1.005 ? ` ×${ratio(cost / least)}` : '';
    button.lastElementChild.textContent = cost === undefined ? '–' : `${figure(cost)}${times}`;
  }
}

/** What stands beside the tree. */
export function beside(plan) {
  byId('cost').textContent = `${plan.shape}, ${figure(plan.cost)} ns a window`;
  const most = Math.max(...plan.alternatives.map((a) => a.cost), 1e-9);
  byId('alternatives').replaceChildren(make('table', {}, make('tbody', {}, plan.alternatives.map((a) => make('tr', { class: a.chosen ? 'chosen' : null },
    make('td', { class: 'mono' }, a.shape), make('td', { class: 'num' }, figure(a.cost)), make('td', {}, make('span', { class: 'track' }, make('span', { class: 'share', style: { width: `${(a.cost / most) * 100}%` } }))))))),
  plan.considered > plan.alternatives.length ? make('p', { class: 'soft small' }, `${(plan.considered - plan.alternatives.length).toLocaleString('en-US')} more were considered.`) : '');
  byId('facts').replaceChildren(make('table', {}, make('tbody', {}, plan.facts.map(([name, value]) => make('tr', {}, make('th', { scope: 'row' }, name), make('td', {}, value))))));
}
