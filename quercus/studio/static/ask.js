// Requests to the studio. The secret is part of the page's own address, and so of every relative one.

/** The answer to a request; what the studio says is wrong is an Error. */
export async function ask(name, body = {}) {
  const answer = await fetch(`api/${name}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(await answer.text());
  const found = await answer.json();
  if (found.failed !== undefined && found.state === undefined) throw new Error(found.failed);
  return found;
}

/** Calls that come in quick succession: only the last one is made, and only the last answer counts. */
export function latest(act, wait) {
  let number = 0, timer = null;
  return (...given) => {
    const mine = (number += 1);
    clearTimeout(timer);
    timer = setTimeout(() => act(() => mine === number, ...given), wait);
  };
}
