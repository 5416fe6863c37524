// Filters of matches: words that must all hold. `9`: somewhere in a match. `id=9`: in some event. `o.id=9`: of that variable.

const TERM = /^(?:(?<of>[^.=<>!~]+)\.)?(?<attr>[^.=<>!~]+)(?<op>!=|>=|<=|=|>|<|~)(?<value>.*)$/s;

/** A test of a match from the text of a filter; `read` gives the values of an event by attribute. */
export function filter(text, variables, read) {
  const tests = (text.match(/(?:[^\s"]|"[^"]*")+/g) || []).map((word) => term(word.replaceAll('"', ''), variables, read));
  return (match) => tests.every((test) => test(match));
}

function term(word, variables, read) {
  const m = TERM.exec(word);
  if (!m) {
    const wanted = word.toLowerCase();
    return (match) => events(match).some((e) => read.all(e).some((v) => String(v).toLowerCase().includes(wanted)));
  }
  const { of, attr, op, value } = m.groups;
  return (match) => events(match, of === undefined ? null : variables.indexOf(of)).some((e) => holds(read.one(e, attr), op, value));
}

function events(match, only = null) {
  return (only === null ? match : [match[only]]).flat().filter((e) => e !== null && e !== undefined);
}

function holds(found, op, value) {
  if (found === undefined || found === null) return false;
  if (op === '~') return String(found).toLowerCase().includes(value.toLowerCase());
  const numbers = value !== '' && !Number.isNaN(Number(value)) && !Number.isNaN(Number(found));
  const [a, b] = numbers ? [Number(found), Number(value)] : [String(found), value];
  switch (op) {
    case '=': return a === b;
    case '!=': return a !== b;
    case '<': return a < b;
    case '>': return a > b;
    case '<=': return a <= b;
    default: return a >= b;
  }
}
