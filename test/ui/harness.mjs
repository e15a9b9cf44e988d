// A small harness: tests run one after another, each on a page of its own, and fail when the
// page writes an error or breaks its policy.
import { chromium } from 'playwright-core';
import { existsSync } from 'node:fs';

const tests = [];
export const test = (name, run, options = {}) => tests.push({ name, run, options });

export function check(truth, why) {
  if (!truth) throw new Error(why);
}

export function equal(got, want, what) {
  const [g, w] = [JSON.stringify(got), JSON.stringify(want)];
  if (g !== w) throw new Error(`${what}: got ${g.slice(0, 400)}, want ${w.slice(0, 400)}`);
}

export const executable = process.env.CHROMIUM || '/usr/bin/chromium';

export function launch() {
  if (!existsSync(executable)) throw new Error(`no ${executable}: install the Debian package chromium (scripts/test-tools.sh), or name another in CHROMIUM`);
  return chromium.launch({ executablePath: executable, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

/** watched is a page with a list of what went wrong on it. */
export async function watched(context) {
  const page = await context.newPage();
  const wrong = [];
  page.on('console', (m) => { if (m.type() === 'error') wrong.push(`console: ${m.text()}`); });
  page.on('pageerror', (e) => wrong.push(`error: ${e.message}`));
  page.on('request', (r) => { if (!r.url().startsWith(context.origin) && !/^(blob|data):/.test(r.url())) wrong.push(`request to ${r.url()}`); });
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (e) => window.violations.push(`${e.violatedDirective} ${e.blockedURI} ${e.sample}`));
  });
  page.setDefaultTimeout(10e3);
  return { page, wrong };
}

/** runAll runs every test and prints how many passed. */
export async function runAll(world) {
  const browser = await launch();
  const only = process.argv[2];
  let passed = 0, failed = 0;
  for (const t of tests) {
    if (only && !t.name.includes(only)) continue;
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, baseURL: world.url, acceptDownloads: true, timezoneId: 'America/New_York', ...t.options.context });
    context.origin = world.url;
    const { page, wrong } = await watched(context);
    const began = Date.now();
    try {
      await t.run(page, world, context);
      if (t.options.context?.javaScriptEnabled !== false && page.url().startsWith('http')) wrong.push(...(await page.evaluate(() => window.violations)).map((v) => `policy: ${v}`));
      const left = wrong.filter((w) => !t.options.expects?.test(w));
      if (left.length) throw new Error(left.join('\n'));
      passed++;
      console.log(`ok    ${t.name} (${Date.now() - began} ms)`);
    } catch (e) {
      failed++;
      console.log(`FAIL  ${t.name}: ${e.message}`);
    } finally {
      await context.close();
    }
  }
  await browser.close();
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 && passed > 0;
}
