// Moving pictures by hand.

/** Drags with one pointer move, with two they zoom. */
export function dragged(frame, move, zoom) {
  const held = new Map();
  frame.addEventListener('pointerdown', (e) => {
    if (e.button !== 0) return;
    held.set(e.pointerId, e);
  });
  frame.addEventListener('pointermove', (e) => {
    const before = held.get(e.pointerId);
    if (!before) return;
    if (!e.buttons) { held.delete(e.pointerId); return; }
    if (!frame.hasPointerCapture(e.pointerId)) frame.setPointerCapture(e.pointerId);
    const other = [...held.values()].find((p) => p.pointerId !== e.pointerId);
    if (other) {
      const far = (p) => Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY);
      if (far(before) > 0) zoom(far(e) / far(before), (e.clientX + other.clientX) / 2, (e.clientY + other.clientY) / 2);
    } else {
      move(e.clientX - before.clientX, e.clientY - before.clientY);
    }
    held.set(e.pointerId, e);
  });
  for (const kind of ['pointerup', 'pointercancel', 'lostpointercapture']) {
    frame.addEventListener(kind, (e) => held.delete(e.pointerId));
  }
}
