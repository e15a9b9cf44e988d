// How long the pages take: node bench.mjs [day|days], from make ui-bench. It makes 2.6 M
// attempts of a day, and as many of 90 days, and writes docs/ui-benchmarks.md.
import { gzipSync } from 'node:zlib';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { loadavg, cpus } from 'node:os';
import { launch } from './harness.mjs';
import { startWorld } from './world.mjs';

const runs = Number(process.env.RUNS || 40);
const worlds = {
  day: { title: 'a day of 2.6 M attempts', sim: ['--hours', '24', '--ops-per-minute', '1700', '--scenario', 'side_by_side'], window: 24 * 60 },
  days: { title: '90 days of 2.6 M attempts', sim: ['--hours', '2159', '--ops-per-minute', '19', '--scenario', 'healthy'], window: 90 * 24 * 60 - 60 },
};
const pages = ['/', '/errors', '/layers', '/spend', '/operations', '/alerts', '/status'];
const target = 150, ready = 1000;

const quantile = (values, p) => [...values].sort((a, b) => a - b)[Math.ceil(p * values.length) - 1];
const ms = (n) => (n < 10 ? n.toFixed(1) : String(Math.round(n)));
const serverTime = async (address) => {
  const began = Date.now();
  const answer = await fetch(address);
  await answer.text();
  if (answer.status === 504) return Date.now() - began; // given up after 30 s: it counts as that
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return Number(/dur=([\d.]+)/.exec(answer.headers.get('server-timing'))[1]);
};

async function measure(page, world, url, browser) {
  const minute = 60e3, now = Math.floor(Date.now() / minute) * minute;
  const at = (i) => `${url}${page}?from=${now - (world.window + i) * minute}&to=${now - i * minute}`;
  const fresh = [], again = [], shown = [];
  for (let i = 1; i <= runs; i++) fresh.push(await serverTime(at(i))); // another window each time: nothing is kept
  await serverTime(at(0));
  for (let i = 0; i < runs; i++) again.push(await serverTime(at(0)));
  for (let i = 0; i < 5; i++) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    const tab = await context.newPage();
    const began = Date.now();
    await tab.goto(at(0), { waitUntil: 'load' });
    if (await tab.locator('figure[data-chart]').count()) await tab.locator('.plot.live').last().waitFor();
    shown.push(Date.now() - began);
    await context.close();
  }
  return { page, fresh: quantile(fresh, 0.95), median: quantile(fresh, 0.5), again: quantile(again, 0.95), shown: quantile(shown, 0.5) };
}

const verdict = (value, limit) => (value <= limit ? 'met' : '**missed**');

const script = readFileSync(new URL('../../web/static/dist/app.js', import.meta.url));
const size = gzipSync(script, { level: 9 }).length;
let text = `# Pages, measured

\`make ui-bench\`: the real binaries with an embedded engine, ${cpus().length} cores of ${cpus()[0].model.trim()}, Debian's Chromium. Server: the time that the
page's \`Server-Timing\` tells, ${runs} requests. *Anew*: each asks for another window, so no answer is kept from the one before. *Again*: the same
window within a minute, as when pages are gone through. Ready: from the navigation until the last chart is drawn, median of 5, each in a new browser context.

Script of the pages: ${(size / 1000).toFixed(1)} kB gzipped (target ≤ 40 kB: ${verdict(size, 40_000)}).
`;
for (const [name, world] of Object.entries(worlds)) {
  if (process.argv[2] && process.argv[2] !== name) continue;
  const w = await startWorld([...world.sim, '--seed', '1']);
  const browser = await launch();
  try {
    const status = await (await fetch(`${w.url}/api/v1/report?from=now-100d`)).json();
    text += `\n## ${world.title}\n\n${status.rows[0].attempts.toLocaleString('en-US')} attempts in the store. Load while measuring: ${loadavg()[0].toFixed(1)} to `;
    const rows = [];
    for (const page of pages) rows.push(await measure(page, world, w.url, browser));
    text += `${loadavg()[0].toFixed(1)}.\n\n| page | server anew, p50 ms | p95 ms | target ≤ ${target} | again, p95 ms | target ≤ ${target} | ready, ms | target ≤ ${ready} |\n|---|---:|---:|---|---:|---|---:|---|\n`;
    for (const r of rows) text += `| \`${r.page}\` | ${ms(r.median)} | ${ms(r.fresh)} | ${verdict(r.fresh, target)} | ${ms(r.again)} | ${verdict(r.again, target)} | ${ms(r.shown)} | ${verdict(r.shown, ready)} |\n`;
  } finally {
    await browser.close();
    await w.stop();
  }
}
const page = process.env.OUT || new URL('../../docs/ui-benchmarks.md', import.meta.url);
if (existsSync(page)) { // what people wrote below the tables stays
  const old = readFileSync(page, 'utf8');
  const said = old.indexOf('\n**Why');
  if (said >= 0) text += old.slice(said);
}
writeFileSync(page, text);
console.log(text);
