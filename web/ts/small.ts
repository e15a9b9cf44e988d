// What needs no module of its own: the browser's time zone, printing, and saying that
// something was done.

/** addZone offers the browser's own time zone beside UTC. */
export function addZone(): void {
  const nav = document.querySelector<HTMLElement>('nav.zone');
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!nav || !zone || zone === 'UTC' || nav.querySelector('[data-own]')) return;
  const url = new URL(location.href);
  url.searchParams.set('tz', zone);
  const link = document.createElement('a');
  link.href = url.pathname + url.search;
  link.textContent = zone;
  link.dataset.own = '';
  if (nav.dataset.zone === zone) link.setAttribute('aria-current', 'true');
  nav.append(link);
}

/** listenToPrint opens what is closed: closed details do not print. */
export function listenToPrint(): void {
  let closed: HTMLDetailsElement[] = [];
  addEventListener('beforeprint', () => {
    closed = [...document.querySelectorAll<HTMLDetailsElement>('main details:not([open]):not(.filter)')];
    closed.forEach((d) => { d.open = true; });
  });
  addEventListener('afterprint', () => closed.forEach((d) => { d.open = false; }));
}

/** say tells for a moment what was done. */
export function say(text: string): void {
  document.querySelector('.copied')?.remove();
  const p = document.createElement('p');
  p.className = 'copied';
  p.setAttribute('role', 'status');
  p.textContent = text;
  document.body.append(p);
  setTimeout(() => p.remove(), 2000);
}
