// Elements without markup: every text is set as text, so that no value can become a tag.

export const SVG = 'http://www.w3.org/2000/svg';

/** An element with attributes, listeners (`onclick`) and children; strings and numbers become text. */
export function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same, of SVG. */
export function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'text') element.textContent = value;
    else if (name === 'style') Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false).map(node));
  return element;
}

function node(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

export function byId(id) {
  return document.getElementById(id);
}

/** Numbers with separators, everything else as it is. */
export function shown(value) {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number' && Number.isInteger(value)) return value.toLocaleString('en-US');
  if (typeof value === 'number') return String(Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4 ? value : +value.toPrecision(6));
  if (Array.isArray(value)) return value.map(inner).join('; ');
  if (typeof value === 'object' && 'ts' in value && 'type' in value) return event(value);
  if (typeof value === 'object') return Object.entries(value).map(([k, v]) => `${k}=${inner(v)}`).join(', ');
  return String(value);
}

function event({ ts, type, ...rest }) {
  const others = Object.entries(rest).filter(([, v]) => v !== null).map(([k, v]) => ` · ${k}=${inner(v)}`);
  return `${ts} ${type}${others.join('')}`;
}

function inner(value) {
  if (value === null) return 'null';
  if (typeof value === 'number' && !Number.isInteger(value)) return shown(value);
  return typeof value === 'object' ? `(${shown(value)})` : String(value);
}
