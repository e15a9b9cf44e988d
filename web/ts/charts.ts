// Charts that show the values under the pointer and can be brushed: what was drawn on the
// server stays beside them, for printing.
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

interface Data {
  unit: 'count' | 'tokens' | 'usd' | 'ratio' | 'ms';
  factor: boolean;
  from: number;
  to: number;
  times: number[];
  series: { name: string; values: (number | null)[] }[];
}

const dashes: number[][] = [[], [], [], [6, 3], [2, 3], [8, 3, 2, 3]];
let plots: uPlot[] = [];
let redraw: () => void = () => {};
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => redraw());

/** drawCharts draws every chart of the page; a brushed window is gone to. */
export function drawCharts(go: (href: string) => void): void {
  redraw = () => {
    plots.forEach((p) => p.destroy());
    plots = [];
    document.querySelectorAll<HTMLElement>('figure[data-chart]').forEach((f) => draw(f, go));
  };
  redraw();
}

function draw(figure: HTMLElement, go: (href: string) => void): void {
  const text = figure.dataset.chart;
  const box = figure.querySelector<HTMLElement>('.plot');
  if (!text || !box) return;
  const data = JSON.parse(text) as Data;
  if (data.times.length < 2 || !known(zoneOf())) return;
  const plot = new uPlot(options(data, box, go), [data.times, ...data.series.map((s) => s.values)], box);
  plots.push(plot);
  box.classList.add('live');
}

const zoneOf = (): string => document.querySelector<HTMLElement>('nav.zone')?.dataset.zone ?? 'UTC';

/** known tells whether the browser has a time zone that the server has: its data may be older. */
function known(timeZone: string): boolean {
  try { return Boolean(new Intl.DateTimeFormat('en', { timeZone })); } catch { return false; }
}

function options(data: Data, box: HTMLElement, go: (href: string) => void): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const zone = zoneOf();
  const axis = { stroke: color('soft'), grid: { stroke: color('line'), width: 1 }, ticks: { show: false } };
  const at = (t: number) => stamp(t, zone);
  return {
    width: Math.max(260, box.clientWidth), height: 190,
    tzDate: (ts) => uPlot.tzDate(new Date(ts * 1000), zone === 'UTC' ? 'Etc/UTC' : zone),
    scales: { x: { range: [data.from, data.to] } },
    axes: [
      { ...axis, values: (_, splits) => splits.map((t) => at(t).slice(data.to - data.from > 26 * 3600 ? 5 : 11, 16)) },
      { ...axis, size: 62, values: (_, splits) => splits.map((v) => write(data, v)) },
    ],
    series: [
      { label: 'time', value: (_, t) => (t == null ? '–' : at(t)) },
      ...data.series.map((s, i) => ({ label: s.name, stroke: color(`s${i}`), width: 2, dash: dashes[i] ?? [], points: { show: false }, value: (_: uPlot, v: number | null) => (v == null ? '–' : write(data, v)) })),
    ],
    cursor: { drag: { x: true, y: false } },
    hooks: { setSelect: [(u) => brushed(u, go)] },
  };
}

function brushed(u: uPlot, go: (href: string) => void): void {
  if (u.select.width < 6) return;
  const url = new URL(location.href);
  const ms = (x: number) => String(Math.round(u.posToVal(x, 'x')) * 1000);
  url.searchParams.set('from', ms(u.select.left));
  url.searchParams.set('to', ms(u.select.left + u.select.width));
  url.searchParams.delete('as_of');
  url.hash = '';
  go(url.href);
}

/** stamp is an ISO time in a zone. */
function stamp(t: number, zone: string): string {
  return new Date(t * 1000).toLocaleString('sv-SE', { timeZone: zone }).replace(' ', 'T');
}

/** write is a number as the server writes it. */
function write(data: Data, v: number): string {
  switch (data.unit) {
    case 'ratio': return data.factor ? `×${v.toFixed(2)}` : `${(v * 100).toFixed(2)} %`;
    case 'ms': return v < 1000 ? `${Math.round(v)} ms` : `${(v / 1000).toFixed(1)} s`;
    case 'usd': return v !== 0 && v < 0.01 ? v.toFixed(6) : v.toFixed(2);
  }
  return v.toLocaleString('en-US', { maximumFractionDigits: 0 });
}
