// A tree that can be zoomed, moved and asked: the picture itself comes from Python.
import { byId, make } from './dom.js';
import { dragged } from './dragged.js';

const LEAST = 0.1, MOST = 6;

/** Make the <svg> in `frame` movable; `tell(name)` is called with the node that is pointed at, or null. */
export function movable(frame, tell = () => {}) {
  const svg = frame.querySelector('svg.qc-tree');
  const scene = svg.querySelector('.scene');
  const [, , width, height] = svg.getAttribute('viewBox').split(' ').map(Number);
  svg.removeAttribute('viewBox');
  svg.setAttribute('width', '100%');
  svg.setAttribute('height', '100%');
  let at = { x: 0, y: 0, k: 1 };
  let moved = false; // by the reader: until then it fits, however wide its place becomes

  function show() {
    scene.setAttribute('transform', `translate(${at.x} ${at.y}) scale(${at.k})`);
  }
  /** As high as the tree is wide for, within reason. */
  function grow() {
    const k = Math.min(1.1, (frame.clientWidth - 24) / width);
    frame.style.height = `${Math.round(Math.max(240, Math.min(height * k + 40, 640, window.innerHeight * 0.8)))}px`;
  }
  function fit() {
    const box = frame.getBoundingClientRect();
    const k = Math.max(LEAST, Math.min(1.25, (box.width - 24) / width, (box.height - 24) / height));
    at = { k, x: (box.width - width * k) / 2, y: Math.max(12, (box.height - height * k) / 2) };
    moved = false;
    show();
  }
  function zoom(by, x, y) {
    const box = frame.getBoundingClientRect();
    const px = x === undefined ? box.width / 2 : x - box.left, py = y === undefined ? box.height / 2 : y - box.top;
    const k = Math.max(LEAST, Math.min(MOST, at.k * by));
    at = { k, x: px - ((px - at.x) * k) / at.k, y: py - ((py - at.y) * k) / at.k };
    moved = true;
    show();
  }
  function move(dx, dy) {
    at = { ...at, x: at.x + dx, y: at.y + dy };
    moved = true;
    show();
  }

  frame.addEventListener('wheel', (e) => {
    if (!e.ctrlKey && !e.metaKey && !e.shiftKey && document.activeElement !== frame && !frame.contains(document.activeElement)) return;
    e.preventDefault();
    zoom(Math.exp(-e.deltaY / 300), e.clientX, e.clientY);
  }, { passive: false });
  dragged(frame, move, (by, x, y) => zoom(by, x, y));
  frame.addEventListener('keydown', (e) => {
    const step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[e.key];
    if (step) move(...step);
    else if (e.key === '+' || e.key === '=') zoom(1.25);
    else if (e.key === '-') zoom(0.8);
    else if (e.key === '0') fit();
    else return;
    e.preventDefault();
  });
  let on = null;
  function point(node) {
    if (node === on) return;
    on?.classList.remove('on');
    on = node;
    on?.classList.add('on');
    tell(node ? node.dataset.node : null);
  }
  for (const kind of ['pointerover', 'focusin']) {
    svg.addEventListener(kind, (e) => { const node = e.target.closest('.node'); if (node) point(node); });
  }
  grow();
  fit();
  const watch = new ResizeObserver(() => {
    if (!svg.isConnected) watch.disconnect();
    else if (!moved) fit();
  });
  watch.observe(frame);
  return { fit, zoom };
}

/** Buttons for a tree, and the panel that tells of a node. */
export function toolbar(tree) {
  const button = (label, name, act) => make('button', { type: 'button', 'aria-label': name, title: name, onclick: act }, label);
  return [
    button('+', 'Zoom in', () => tree.zoom(1.25)),
    button('−', 'Zoom out', () => tree.zoom(0.8)),
    button('Fit', 'Fit the whole tree', () => tree.fit()),
  ];
}

/** What is known of one node, in the element `place`. */
export function told(place, details, name) {
  const node = name === null ? null : details[name];
  place.replaceChildren();
  if (!node) {
    place.append(make('p', { class: 'soft small' }, 'Point at a node, or tab to it, to see what was expected of it and what it did.'));
    return;
  }
  place.append(
    make('h3', {}, node.head),
    ...node.lines.map((line) => make('p', { class: 'mono small' }, line)),
    make('dl', {},
      node.estimate ? [make('dt', {}, 'expected'), make('dd', {}, node.estimate)] : null,
      node.actual.length ? [make('dt', {}, 'actual'), ...node.actual.map((line) => make('dd', {}, line))] : null,
    ),
  );
}

export function tellIn(id, details) {
  const place = byId(id);
  told(place, details, null);
  return (name) => told(place, details, name);
}
