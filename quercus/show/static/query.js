// The colours of a query. Close to the grammar, and never wrong about the text itself: all of it comes back.
import { make } from './dom.js';

const TOKEN =
  /(?<comment>--[^\n]*)|(?<string>'(?:[^'\n]|'')*'?|"(?:[^"\n]|"")*"?)|(?<number>\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)|(?<word>[\p{L}_][\p{L}\p{N}_]*)|(?<bang>!(?!=))|(?<other>[^])/gu;
const KEYWORDS = new Set(
  'pattern where within return agg seq and or not in between is null true false as partition group by groupby'.split(' '),
);
const FUNCTIONS = new Set('count sum avg min max first last abs round floor ceil lower upper length'.split(' '));

/** The pieces of a text as [kind, piece]; `types` are names that stand for event types. */
export function tokens(text, types = new Set()) {
  const found = [];
  for (const m of text.matchAll(TOKEN)) {
    let kind = Object.keys(m.groups).find((k) => m.groups[k] !== undefined);
    if (kind === 'word') {
      const before = text.slice(0, m.index).trimEnd().slice(-1);
      const called = /^\s*\(/.test(text.slice(m.index + m[0].length));
      const keyword = KEYWORDS.has(m[0].toLowerCase()) || (called && FUNCTIONS.has(m[0].toLowerCase()));
      kind = before === '.' ? 'word' : types.has(m[0]) ? 'type' : keyword ? 'keyword' : 'word';
    }
    const last = found[found.length - 1];
    if (last && last[0] === kind && (kind === 'other' || kind === 'word')) last[1] += m[0];
    else found.push([kind, m[0]]);
  }
  return found;
}

/** The pieces as elements; `from` and `to` (in code units) are marked as wrong. */
export function coloured(text, types, from = -1, to = -1) {
  const out = [];
  let at = 0;
  for (const [kind, piece] of tokens(text, types)) {
    for (const [start, end, wrong] of cuts(at, at + piece.length, from, to)) {
      const part = text.slice(start, end);
      const classes = [kind === 'other' || kind === 'word' ? '' : `t-${kind}`, wrong ? 'wrong' : ''].join(' ').trim();
      out.push(classes ? make('span', { class: classes }, part) : document.createTextNode(part));
    }
    at += piece.length;
  }
  return out;
}

function cuts(start, end, from, to) {
  const inside = [Math.max(start, from), Math.min(end, to)];
  if (from < 0 || inside[0] >= inside[1]) return [[start, end, false]];
  return [[start, inside[0], false], [...inside, true], [inside[1], end, false]].filter(([a, b]) => a < b);
}
