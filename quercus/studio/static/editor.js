// A text area over its own coloured copy, with what is wrong underlined and suggestions at the caret.
import { byId, make } from '../show/dom.js';
import { coloured } from '../show/query.js';
import { ask, latest } from './ask.js';

/** The editor; `changed(text)` is called as one types, `where()` gives the file that the query is about. */
export function editor(changed, where) {
  const text = byId('text'), under = byId('under'), list = byId('suggestions'), problem = byId('problem');
  let types = new Set(), wrong = null, items = [], at = 0, span = null;

  function paint() {
    const [from, to] = wrong ?? [-1, -1];
    under.replaceChildren(...coloured(text.value, types, from, to), wrong && from >= text.value.length ? make('span', { class: 'wrong at-end' }) : '', '\n');
  }
  function said(error) {
    wrong = error?.span ?? null;
    problem.hidden = !error;
    if (error) {
      const place = error.line ? `line ${error.line}, column ${error.column}: ` : '';
      problem.replaceChildren(make('div', {}, make('b', {}, `${place}`), error.message), ...caret(error), error.hint ? make('div', { class: 'hint' }, error.hint) : '');
    }
    paint();
  }
  function caret(error) {
    if (!error.line) return [];
    const line = text.value.split('\n')[error.line - 1] ?? '';
    const length = wrong ? Math.max(1, Math.min(wrong[1] - wrong[0], line.length - error.column + 1)) : 1;
    const from = Math.max(0, error.column - 41);
    return [make('pre', {}, `${line.slice(from, from + 90)}\n${' '.repeat(error.column - 1 - from)}${'^'.repeat(length)}`)];
  }

  // ---- suggestions
  const look = latest(async (current) => {
    try {
      const found = await ask('suggest', { ...where(), query: text.value, caret: text.selectionStart });
      if (!current() || document.activeElement !== text) return;
      items = found.items;
      at = 0;
      span = [found.from, found.to];
      offer();
    } catch { hide(); }
  }, 80);
  function offer() {
    list.hidden = !items.length;
    list.replaceChildren(...items.map((item, i) => make('li', { role: 'option', id: `s${i}`, 'aria-selected': String(i === at), onpointerdown: (e) => { e.preventDefault(); take(i); } },
      make('span', { class: `t-${item.kind === 'operator' ? 'keyword' : item.kind}` }, item.insert), make('span', { class: 'note' }, item.note || item.kind))));
    if (items.length) text.setAttribute('aria-activedescendant', `s${at}`);
    const place = caretPlace();
    list.style.left = `${Math.max(4, Math.min(place.x, byId('editor').clientWidth - 220))}px`;
    list.style.top = `${place.y}px`;
    list.children[at]?.scrollIntoView({ block: 'nearest' });
  }
  function caretPlace() {
    const copy = make('pre', { class: 'query under', style: { position: 'absolute', visibility: 'hidden', left: 0, top: 0 } }, text.value.slice(0, span[0]), make('span', {}, '​'));
    byId('editor').append(copy);
    const mark = copy.lastElementChild;
    const place = { x: mark.offsetLeft, y: mark.offsetTop + 26 };
    copy.remove();
    return place;
  }
  function hide() {
    list.hidden = true;
    items = [];
    text.removeAttribute('aria-activedescendant');
  }
  function take(i) {
    const { insert } = items[i];
    text.setSelectionRange(...span);
    text.setRangeText(insert, ...span, 'end');
    hide();
    typed(false);
    if (/[( .]$/.test(insert)) look();
  }

  function typed(suggest = true) {
    wrong = null;
    paint();
    changed(text.value);
    const before = text.value.slice(0, text.selectionStart);
    if (suggest && /[\w.[(!]$/.test(before)) look(); else hide();
  }
  text.addEventListener('input', () => typed());
  text.addEventListener('blur', hide);
  text.addEventListener('click', hide);
  text.addEventListener('keydown', (e) => {
    if (e.key === ' ' && e.ctrlKey) { look(); e.preventDefault(); return; }
    if (list.hidden) return;
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') { at = (at + (e.key === 'ArrowDown' ? 1 : items.length - 1)) % items.length; offer(); }
    else if (e.key === 'Tab' || (e.key === 'Enter' && !e.ctrlKey && !e.metaKey)) take(at);
    else if (e.key === 'Escape') hide();
    else return;
    e.preventDefault();
  });
  return {
    get value() { return text.value; },
    set value(to) { text.value = to; paint(); },
    said,
    known(names) { types = new Set(names); paint(); },
    hide,
  };
}
