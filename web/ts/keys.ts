// Keys: one or two, named by data-key on what they activate. They are off in inputs, and can
// be switched off, which the browser remembers.

const storage = 'retrylens.keys';
const own: [string, string][] = [
  ['?', 'these keys'], ['/', 'find an operation by its logical id'], ['g t e l s o a u', 'go to triage, errors, layers, spend, operations, alerts, status'],
  ['j k', 'next, previous row'], ['Enter', 'open the row, or the link that has the focus'], ['Esc', 'leave a field, a row, this'], ['t', 'change the window'],
  ['e c p j', 'export CSV, Parquet, JSON'], ['y u c s', 'copy the permalink, curl, SQL of an operation'],
];
const off = (): boolean => localStorage.getItem(storage) === 'off';

type Go = (href: string) => void;
type Say = (text: string) => void;
let go: Go = () => {};
let say: Say = () => {};
let first = '';

/** listenToKeys begins to. */
export function listenToKeys(navigate: Go, told: Say): void {
  go = navigate;
  say = told;
  document.addEventListener('keydown', pressed);
}

function typing(e: KeyboardEvent): boolean {
  const at = e.target as HTMLElement;
  return at.matches?.('input, textarea, select, [contenteditable]') ?? false;
}

function pressed(e: KeyboardEvent): void {
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
  if (e.key === 'Escape') { leave(); return; }
  if (typing(e) || document.querySelector('dialog[open]')) return;
  if (e.key === '?') { help(); e.preventDefault(); return; }
  if (off()) return;
  const sequence = first ? `${first} ${e.key}` : e.key;
  first = '';
  if (act(sequence)) { e.preventDefault(); return; }
  if (['g', 'e', 'y'].includes(e.key)) { first = e.key; setTimeout(() => { if (first === e.key) first = ''; }, 1500); }
}

function act(sequence: string): boolean {
  if (sequence === 'j' || sequence === 'k') { step(sequence === 'j' ? 1 : -1); return true; }
  if (sequence === 'Enter') return open();
  if (sequence === 'y u') return copy(document.querySelector<HTMLAnchorElement>('[data-copy-href]')?.href, 'permalink');
  if (sequence === 'y s' || sequence === 'y c') {
    const what = sequence === 'y s' ? 'SQL' : 'curl';
    if (!copy(document.querySelector(`[data-copy="${sequence}"]`)?.textContent ?? (what === 'curl' ? exported() : null), what)) say(`This page has no ${what} to copy`);
    return true;
  }
  for (const el of document.querySelectorAll<HTMLElement>('[data-key]')) {
    if (el.dataset.key !== sequence) continue;
    if (el instanceof HTMLInputElement) { el.focus(); el.select(); } else el.click();
    return true;
  }
  return false;
}

/** exported is the command that fetches what the page exports as JSON; a URL's quotes are escaped. */
function exported(): string | null {
  const link = document.querySelector<HTMLAnchorElement>('nav.exports [data-key="e j"]');
  return link && `curl '${link.href.replaceAll("'", '%27')}'`;
}

const rows = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>('main tr[data-href]')];
const selected = (): number => rows().findIndex((r) => r.classList.contains('selected'));

function step(by: number): void {
  const all = rows();
  const at = selected();
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  if (!next) return;
  if (at >= 0) mark(all[at]!, false);
  mark(next, true);
  next.scrollIntoView({ block: 'nearest' });
}

function mark(row: HTMLElement, on: boolean): void {
  row.classList.toggle('selected', on);
  if (on) row.querySelector<HTMLElement>('a')?.focus({ preventScroll: true });
}

function open(): boolean {
  const at = document.activeElement;
  const row = rows()[selected()];
  if (!row || (at && at !== document.body && (!row.contains(at) || at !== row.querySelector('a')))) return false;
  go(row.dataset.href!);
  return true;
}

function leave(): void {
  document.querySelector<HTMLDialogElement>('dialog[open]')?.close();
  (document.activeElement as HTMLElement | null)?.blur();
  const row = rows()[selected()];
  if (row) mark(row, false);
}

function copy(text: string | null | undefined, what: string): boolean {
  if (!text) return false;
  const done = () => say(`Copied: ${what}`);
  const field = () => {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
    done();
  };
  if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, field); else field();
  return true;
}

function help(): void {
  const dialog = document.querySelector('dialog') ?? document.body.appendChild(document.createElement('dialog'));
  dialog.setAttribute('aria-label', 'Keys');
  dialog.replaceChildren(title(), list(), toggle(), close(dialog));
  dialog.showModal();
}

function element<K extends keyof HTMLElementTagNameMap>(name: K, text: string): HTMLElementTagNameMap[K] {
  const el = document.createElement(name);
  el.textContent = text;
  return el;
}

const title = (): HTMLElement => element('h2', 'Keys');

function list(): HTMLElement {
  const dl = element('dl', '');
  dl.className = 'facts';
  for (const [keys, what] of own) {
    const dt = element('dt', '');
    for (const k of keys.split(' ')) dt.append(element('kbd', k), ' ');
    dl.append(dt, element('dd', what));
  }
  return dl;
}

function toggle(): HTMLElement {
  const label = element('label', ' keys are on');
  const box = element('input', '');
  box.type = 'checkbox';
  box.checked = !off();
  box.addEventListener('change', () => localStorage.setItem(storage, box.checked ? 'on' : 'off'));
  label.prepend(box);
  return label;
}

function close(dialog: HTMLDialogElement): HTMLElement {
  const button = element('button', 'Close');
  button.addEventListener('click', () => dialog.close());
  const p = element('p', '');
  p.append(button);
  return p;
}
