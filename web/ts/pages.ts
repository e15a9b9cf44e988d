// Pages are fetched and their <main> is put in place of the one that is shown. The URL is
// the only state: going back is fetching again.

interface TrustedHTMLPolicy { createHTML(text: string): string }
interface TrustedTypes { createPolicy(name: string, rules: { createHTML(text: string): string }): TrustedHTMLPolicy }

// What is parsed comes from this service only, whose templates escape every value; scripts in
// what DOMParser makes never run.
const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
const policy = types?.createPolicy('retrylens', { createHTML: (text) => text }) ?? { createHTML: (text: string) => text };

let enhance: () => void = () => {};
let latest = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

const main = (): HTMLElement => document.getElementById('main')!;

/** navigate shows the page at an address and puts it into the history. */
export function navigate(href: string): void {
  void show(href, 'push');
}

/** listenToLinks follows links and forms, and calls back whenever a page was put in place. */
export function listenToLinks(then: () => void): void {
  enhance = then;
  document.addEventListener('click', (e) => {
    const link = (e.target as Element).closest?.('a');
    if (!link || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey || !ours(link)) return;
    e.preventDefault();
    navigate(link.href);
  });
  document.addEventListener('submit', (e) => {
    const form = e.target as HTMLFormElement;
    if (form.method !== 'get') return;
    e.preventDefault();
    const to = new URL(form.getAttribute('action') ?? location.pathname, location.href);
    to.search = new URLSearchParams([...new FormData(form)].filter(([, v]) => v !== '') as [string, string][]).toString();
    navigate(to.href);
  });
  addEventListener('popstate', () => void show(location.href, 'stay'));
  document.addEventListener('visibilitychange', () => { if (document.hidden) clearTimeout(timer); else if (interval() > 0) void refresh(); });
  schedule();
}

/** ours tells links to pages from links to files, other sites and places on the page. */
function ours(link: HTMLAnchorElement): boolean {
  if (link.origin !== location.origin || link.hasAttribute('download') || link.target) return false;
  if (/^\/(api|export|static|metrics)(\/|$)/.test(link.pathname)) return false;
  return !(link.hash && link.pathname === location.pathname && link.search === location.search);
}

async function show(href: string, how: 'push' | 'stay' | 'refresh'): Promise<void> {
  const mine = ++latest;
  clearTimeout(timer);
  main().setAttribute('aria-busy', 'true');
  try {
    const answer = await fetch(href, { headers: { Accept: 'text/html' }, credentials: 'same-origin' });
    const text = await answer.text();
    if (mine !== latest) return;
    if (answer.status >= 500 && how === 'refresh') { keep(`The service answered ${answer.status}`); return; }
    place(new DOMParser().parseFromString(policy.createHTML(text), 'text/html'), how, answer.url + new URL(href, location.href).hash);
  } catch {
    if (mine === latest) keep('The service cannot be reached');
  } finally {
    if (mine === latest) { main().removeAttribute('aria-busy'); schedule(); }
  }
}

/** keep leaves the old page under a banner. */
function keep(why: string): void {
  const banner = main().querySelector('.kept') ?? document.createElement('p');
  banner.className = 'kept banner warn';
  banner.setAttribute('role', 'status');
  banner.textContent = `${why}. What is below is as it was; tried again at ${new Date().toISOString().slice(0, 19)}Z.`;
  main().prepend(banner);
}

function place(page: Document, how: string, url: string): void {
  const next = page.getElementById('main');
  if (!next) { location.href = url; return; }
  const open = how === 'refresh' ? opened() : new Set<string>();
  const [x, y] = [scrollX, scrollY];
  main().replaceWith(document.importNode(next, true));
  document.title = page.title;
  for (const part of ['header nav', 'footer']) {
    const now = page.querySelector(part);
    if (now) document.querySelector(part)?.replaceWith(document.importNode(now, true));
  }
  if (how === 'push') history.pushState(null, '', url);
  main().querySelectorAll('details').forEach((d) => { d.open = open.has(nameOf(d)); });
  enhance();
  if (how === 'refresh') scrollTo(x, y);
  else if (how === 'push') {
    const target = new URL(url).hash && document.getElementById(new URL(url).hash.slice(1));
    if (target) target.scrollIntoView(); else scrollTo(0, 0);
    main().focus({ preventScroll: true });
  }
}

const nameOf = (d: HTMLDetailsElement): string => (d.closest('figure')?.id ?? '') + d.querySelector('summary')?.textContent;
const opened = (): Set<string> => new Set([...main().querySelectorAll<HTMLDetailsElement>('details[open]')].map(nameOf));
const interval = (): number => Number(main().dataset.refresh ?? 0);

function schedule(): void {
  clearTimeout(timer);
  if (interval() > 0 && !document.hidden) timer = setTimeout(() => void refresh(), interval() * 1000);
}

async function refresh(): Promise<void> {
  const at = document.activeElement;
  if (at instanceof HTMLInputElement || at instanceof HTMLSelectElement || document.querySelector('dialog[open]')) { schedule(); return; }
  await show(location.href, 'refresh');
}
