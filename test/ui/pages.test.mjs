// Every page, in light and dark, with and without scripts, and what it may not do.
import { createRequire } from 'node:module';
import { readFileSync, mkdirSync, statSync } from 'node:fs';
import { test, check, equal } from './harness.mjs';
import { hostile } from './world.mjs';

const require = createRequire(import.meta.url);
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const pages = { '/': 'Triage', '/errors': 'Errors', '/layers': 'Layers', '/spend?from=now-24h': 'Spend', '/operations': 'Operations', '/alerts': 'Alerts', '/status': 'Status' };

/** operationPath is the page of an operation with several attempts. */
export async function operationPath(page, query = 'tenant=acme') {
  await page.goto(`/operations?${query}&error_class=${query.includes('strange') ? 'server_error' : 'timeout'}&state=succeeded`);
  return page.locator('tbody tr[data-href]').first().getAttribute('data-href');
}

for (const [path, title] of Object.entries({ ...pages, op: 'Operation' })) {
  test(`${title}: no error, axe finds nothing in light and in dark`, async (page) => {
    await page.goto(path === 'op' ? await operationPath(page) : path);
    equal((await page.locator('h1').innerText()).trim(), title, 'h1');
    equal(await page.locator('.banner.error').count(), 0, 'errors on the page');
    check(await page.evaluate(() => document.documentElement.classList.contains('enhanced')), 'the bundle is not there: make web');
    const backgrounds = new Set();
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      backgrounds.add(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
      equal(await axeByProtocol(page), [], `axe, ${colorScheme}`);
    }
    equal(backgrounds.size, 2, 'backgrounds');
  });
}

/** axeByProtocol runs axe through the debugger, where a page's policy does not reach. */
async function axeByProtocol(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('Runtime.evaluate', { expression: axe });
  const { result } = await session.send('Runtime.evaluate', {
    expression: `axe.run(document).then((r) => ({ passes: r.passes.length, found: r.violations.map((v) => v.id + ': ' + v.nodes.length + ' × ' + v.nodes[0].html.slice(0, 200) + ' ' + v.nodes[0].failureSummary) }))`,
    awaitPromise: true, returnByValue: true,
  });
  check(result.value?.passes >= 15, `axe did not run: ${JSON.stringify(result)}`);
  return result.value.found;
}

test('without JavaScript every page says what it says with it', async (page) => {
  for (const [path, title] of Object.entries(pages)) {
    const answer = await page.goto(path);
    equal(answer.status(), 200, path);
    equal((await page.locator('h1').innerText()).trim(), title, 'h1');
  }
  await page.goto('/?from=now-1h');
  check(await page.locator('.plot > svg').first().isVisible(), 'no chart');
  check((await page.locator('.plot > svg path.line').first().getAttribute('d')).length > 100, 'the chart is empty');
  await page.locator('summary', { hasText: 'The values' }).first().click();
  check(await page.locator('figure table tbody tr').first().isVisible(), 'no table beside the chart');
  await page.getByLabel('from', { exact: true }).fill('now-6h');
  await page.getByRole('button', { name: 'Show' }).click();
  check(page.url().includes('from=now-6h'), page.url());
  await page.goto(await operationPath(page));
  check(await page.locator('svg.fall .hatch').first().isVisible(), 'no hatched wait in the waterfall');
}, { context: { javaScriptEnabled: false } });

test('hostile names are text on every page', async (page) => {
  const op = await operationPath(page, 'tenant=strange');
  const pageOf = (p) => p + (p.includes('?') ? '&' : '?') + 'tenant=strange';
  let shown = 0;
  for (const path of [...Object.keys(pages).map(pageOf), op, `/?model=${encodeURIComponent(hostile)}&sort=${encodeURIComponent(hostile)}`, `/operations?logical_id=${encodeURIComponent(hostile)}`, `/${encodeURIComponent(hostile)}`]) {
    await page.goto(path);
    equal(await page.evaluate(() => window.ran ?? null), null, `${path} ran`);
    equal(await page.locator('img').count(), 0, `images on ${path}`);
    const text = await page.locator('body').innerText();
    check(!/[\u202a-\u202e\u2066-\u2069\u200b-\u200f]/.test(text), `${path} shows an invisible character`);
    if (text.includes('\\u202e')) shown++;
  }
  check(shown >= 5, `only ${shown} pages show the character escaped`);
  await page.goto(op);
  check((await page.locator('h2.id').innerText()).includes('<script>window.ran=1</script>'), 'the id is not shown as it is');
}, { expects: /404|status of 4/ });

test('a narrow screen has nothing beside it', async (page) => {
  await page.setViewportSize({ width: 360, height: 780 });
  for (const path of [...Object.keys(pages), await operationPath(page), '/?tenant=strange', '/operations?tenant=strange']) {
    await page.goto(path);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    check(width <= 360, `${path} is ${width} wide`);
  }
});

test('print: the charts are the SVG, what is closed is open', async (page) => {
  await page.goto('/');
  await page.locator('.plot.live').first().waitFor();
  check(!await page.locator('.plot > svg').first().isVisible(), 'both charts are shown');
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  await page.emulateMedia({ media: 'print' });
  check(await page.locator('.plot > svg').first().isVisible(), 'the SVG does not print');
  check(!await page.locator('.uplot').first().isVisible(), 'the canvas prints');
  equal(await page.locator('main figure details:not([open])').count(), 0, 'closed details');
  await page.goto(await operationPath(page));
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  check(await page.locator('pre').count() > 3, 'no records');
  equal(await page.locator('pre').evaluateAll((all) => all.filter((p) => p.scrollHeight > p.clientHeight + 1 || p.clientHeight === 0).length), 0, 'records that are cut off');
});

test('screenshots for the README', async (page) => {
  const dir = process.env.UI_SCREENSHOTS || '../../out/ui';
  const to = new URL(`${dir}/`, import.meta.url).pathname;
  mkdirSync(to, { recursive: true });
  const shot = async (name, height) => {
    await page.setViewportSize({ width: 1100, height });
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: `${to}${name}.png` });
    check(statSync(`${to}${name}.png`).size <= 150_000, `${name}.png is larger than 150 kB`);
  };
  await page.goto('/?from=now-1h&tenant=acme');
  await page.locator('.plot.live').first().waitFor();
  await shot('triage', 760);
  await page.goto(await operationPath(page));
  await shot('waterfall', 680);
  await page.goto('/spend?from=now-24h&tenant=acme');
  await shot('spend', 640);
});
