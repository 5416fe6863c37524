// Times on an axis. A time is a number from the first one on, so that it is exact; the first one is a BigInt.

const PER_SECOND = { s: 1n, ms: 1000n, us: 1000000n, ns: 1000000000n };

/** What a time looks like: a date where times are timestamps, else the number itself. */
export function clock({ base, unit, stamps }) {
  const first = BigInt(base);
  const per = PER_SECOND[unit];
  function parts(at) {
    const whole = first + BigInt(Math.round(at));
    let seconds = whole / per, rest = whole % per;
    if (rest < 0n) { rest += per; seconds -= 1n; }
    const date = new Date(Number(seconds) * 1000);
    return Number.isNaN(date.getTime()) ? null : [date.toISOString(), rest];
  }
  function text(at) {
    const found = stamps ? parts(at) : null;
    if (!found) return String(first + BigInt(Math.round(at)));
    const [iso, rest] = found;
    const places = String(per).length - 1;
    return iso.slice(0, 19).replace('T', ' ') + (rest ? `.${String(rest).padStart(places, '0')}` : '');
  }
  /** The same as short as the distance of two ticks allows. */
  function tick(at, step) {
    const found = stamps ? parts(at) : null;
    if (!found) return (first + BigInt(Math.round(at))).toLocaleString('en-US');
    const [iso, rest] = found;
    const second = Number(per);
    if (step >= 86400 * second) return iso.slice(0, 10);
    if (step >= 60 * second) return iso.slice(11, 16) === '00:00' ? iso.slice(0, 10) : iso.slice(11, 16);
    if (step >= second) return iso.slice(11, 19);
    return iso.slice(17, 19) + (rest ? `.${String(rest).padStart(String(per).length - 1, '0').replace(/0+$/, '')}` : '');
  }
  /** Ticks within a span, about `wanted` of them, at round places. */
  function ticks(from, to, wanted) {
    const step = round((to - from) / Math.max(wanted, 1), stamps ? Number(per) : 0);
    const offset = Number(((first % BigInt(step)) + BigInt(step)) % BigInt(step));
    const found = [];
    for (let at = Math.ceil((from + offset) / step) * step - offset; at <= to && found.length < 200; at += step) found.push(at);
    return { step, at: found };
  }
  return { text, tick, ticks };
}

const NICE = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

/** The next round number from `least` on; in seconds, minutes and hours where a second has a length. */
function round(least, second) {
  if (second && least > second / 2) {
    const found = NICE.find((n) => n * second >= least);
    if (found) return found * second;
  }
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return Math.max(1, Math.round([1, 2, 5, 10].map((m) => m * power).find((n) => n >= least)));
}
