// How the pages are used: filters, ranges, the way back, keys, brushing, refreshing.
import { test, check, equal } from './harness.mjs';
import { until } from './world.mjs';

const param = (page, name) => new URL(page.url()).searchParams.getAll(name);

test('filters are added, shown and removed', async (page) => {
  await page.goto('/');
  await page.locator('summary', { hasText: 'Add a filter' }).click();
  await page.locator('.filter input[name=provider]').last().fill('openai');
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.locator('.chip', { hasText: 'openai' }).waitFor();
  equal(param(page, 'provider'), ['openai'], 'provider');
  equal(await page.locator('table', { hasText: 'Contributors' }).locator('tbody tr').count(), 1, 'contributors');
  await page.getByLabel('Remove the filter provider openai').click();
  await page.locator('.chip').waitFor({ state: 'detached' });
  equal(param(page, 'provider'), [], 'provider');
});

test("Grafana's variables are filters, repeated ones any of them", async (page) => {
  await page.goto('/?var-provider=openai&provider=anthropic');
  equal((await page.locator('.chip b').allInnerTexts()).sort(), ['anthropic', 'openai'], 'chips');
});

test('a range, and back again', async (page) => {
  await page.goto('/errors');
  const before = await page.locator('.times').innerText();
  await page.locator('nav.ranges a', { hasText: '6 h' }).click();
  await page.waitForURL(/from=now-6h/);
  await page.locator('nav.ranges a[aria-current]', { hasText: '6 h' }).waitFor();
  check(await page.locator('.times').innerText() !== before, 'the window did not change');
  await page.goBack();
  await page.locator('nav.ranges a[aria-current]', { hasText: '1 h' }).waitFor();
  equal(param(page, 'from'), [], 'from');
  await page.goForward();
  await page.locator('nav.ranges a[aria-current]', { hasText: '6 h' }).waitFor();
});

test('a link keeps the document, and goes to the page', async (page) => {
  await page.goto('/?provider=openai');
  await page.evaluate(() => { window.same = true; });
  await page.locator('header nav a', { hasText: 'Spend' }).click();
  await page.locator('h1', { hasText: 'Spend' }).waitFor();
  check(await page.evaluate(() => window.same), 'the document was loaded anew');
  equal(await page.locator('header nav a[aria-current]').innerText(), 'Spend', 'navigation');
  equal(param(page, 'provider'), ['openai'], 'the filter goes along');
  equal(await page.title(), 'Spend · Retrylens', 'title');
});

test('brushing a chart writes the window into the URL', async (page) => {
  await page.goto('/?from=now-1h');
  const over = page.locator('#amplification .u-over');
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  await page.mouse.move(box.x + box.width * 0.2, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 5 });
  await page.mouse.up();
  await until(5e3, () => /from=\d{13}/.test(page.url()));
  const [from, to] = [Number(param(page, 'from')[0]), Number(param(page, 'to')[0])];
  check(Math.abs(to - from - 0.4 * 3600e3) < 120e3, `${(to - from) / 60e3} minutes`);
});

test('freeze makes the window absolute and the page the same', async (page) => {
  await page.goto('/layers?from=now-3h&to=now-1h');
  await page.locator('a.freeze').click();
  await page.waitForURL(/from=20/);
  check(/^\d{4}-\d\d-\d\dT/.test(param(page, 'from')[0]) && param(page, 'as_of').length === 1, page.url());
  const table = await page.locator('table').first().innerText();
  await page.reload();
  equal(await page.locator('table').first().innerText(), table, 'the frozen page');
});

test('keys go, choose, open, leave, and are off in inputs', async (page) => {
  await page.goto('/');
  for (const [key, title] of [['e', 'Errors'], ['l', 'Layers'], ['s', 'Spend'], ['o', 'Operations'], ['t', 'Triage'], ['o', 'Operations']]) {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await page.locator('h1', { hasText: title }).waitFor();
  }
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  equal(await page.locator('tr.selected').count(), 1, 'selected rows');
  const href = await page.locator('tr.selected').getAttribute('data-href');
  equal(href, await page.locator('tr[data-href]').first().getAttribute('data-href'), 'the first row');
  await page.keyboard.press('Enter');
  await page.locator('table.waterfall').waitFor();
  await page.keyboard.press('/');
  equal(await page.evaluate(() => document.activeElement.name), 'logical_id', '/');
  await page.keyboard.type('gte?');
  equal(await page.locator('header input').inputValue(), 'gte?', 'typed');
  await page.keyboard.press('Escape');
  await page.keyboard.press('t');
  equal(await page.evaluate(() => document.activeElement.name), 'from', 't');
  await page.keyboard.press('Escape');
});

test('Enter follows the link that has the focus, in a chosen row too', async (page) => {
  await page.goto('/?from=now-1h&tenant=acme');
  await page.keyboard.press('j');
  const link = page.locator('tr.selected a[href*="error_class"]');
  await link.focus();
  const want = await link.getAttribute('href');
  await page.keyboard.press('Enter');
  await page.locator('h1', { hasText: 'Operations' }).waitFor();
  equal(new URL(page.url()).search, new URL(want, page.url()).search, 'address');
});

test('? shows the keys and switches them off', async (page) => {
  await page.goto('/');
  await page.keyboard.press('?');
  await page.locator('dialog[open]').waitFor();
  await page.getByLabel('keys are on').uncheck();
  await page.keyboard.press('Escape');
  await page.locator('dialog[open]').waitFor({ state: 'detached' }).catch(() => {});
  await page.keyboard.press('g');
  await page.keyboard.press('e');
  await page.waitForTimeout(300);
  equal(await page.locator('h1').innerText(), 'Triage', 'the page');
  await page.keyboard.press('?');
  await page.getByLabel('keys are on').check();
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('e');
  await page.locator('h1', { hasText: 'Errors' }).waitFor();
});

test('y copies the permalink, SQL and curl', async (page, world, context) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: world.url });
  await page.goto('/operations?error_class=timeout&tenant=acme');
  await page.locator('tbody tr td a').first().click();
  await page.locator('table.waterfall').waitFor();
  for (const [key, want] of [['u', /as_of=/], ['s', /^SELECT \* FROM attempts_effective WHERE tenant = 'acme'/], ['c', /^curl --get '.*\/api\/v1\/operations\//]]) {
    await page.keyboard.press('y');
    await page.keyboard.press(key);
    await until(3e3, async () => want.test(await page.evaluate(() => navigator.clipboard.readText())));
  }
});

test('y c copies what fetches a page, y s says where there is no SQL', async (page, world, context) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: world.url });
  await page.goto('/spend?from=now-2h&tenant=acme');
  await page.keyboard.press('y');
  await page.keyboard.press('c');
  await page.locator('.copied', { hasText: 'curl' }).waitFor();
  const [, address] = /^curl '(.*)'$/.exec(await page.evaluate(() => navigator.clipboard.readText()));
  const report = await (await page.request.get(address)).json();
  check(address.startsWith(world.url) && report.rows.length > 0, address);
  await page.keyboard.press('y');
  await page.keyboard.press('s');
  await page.locator('.copied', { hasText: 'no SQL' }).waitFor();
});

test('a time zone that the browser does not have leaves the charts of the server', async (page) => {
  await page.addInitScript(() => {
    const real = Intl.DateTimeFormat;
    Intl.DateTimeFormat = function (locale, options) { if (options?.timeZone === 'Europe/Kyiv') throw new RangeError('no such zone'); return new real(locale, options); };
  });
  await page.goto('/?from=now-1h&tz=Europe/Kyiv');
  await page.locator('html.enhanced').waitFor();
  check(await page.locator('.plot > svg').first().isVisible(), 'no chart');
  equal(await page.locator('.uplot').count(), 0, 'charts of the script');
});

test('however long a refresh is, it waits', async (page) => {
  await page.goto('/status?refresh=52w');
  await page.locator('html.enhanced').waitFor();
  let asked = 0;
  page.on('request', () => asked++);
  await page.waitForTimeout(500);
  equal([asked, await page.locator('#main').getAttribute('data-refresh')], [0, '86400'], 'requests and seconds');
});

test('the time zone is switched, and times with it', async (page) => {
  await page.goto('/operations');
  check((await page.locator('tbody td').first().innerText()).endsWith('Z'), 'not UTC');
  await page.locator('nav.zone a', { hasText: 'America/New_York' }).click();
  await page.waitForURL(/tz=America/);
  await until(3e3, async () => /-0[45]:00$/.test(await page.locator('tbody td').first().innerText()));
});

test('sorting by a column', async (page) => {
  await page.goto('/');
  const column = page.locator('th a', { hasText: 'amplification' }).first();
  await column.click();
  await page.locator('th[aria-sort=descending]').waitFor();
  const values = await page.locator('table', { hasText: 'Contributors' }).locator('tbody tr td:nth-child(6)').allInnerTexts();
  const numbers = values.map((v) => Number(v.slice(1)));
  equal(numbers, [...numbers].sort((a, b) => b - a), 'order');
});

test('refresh goes on, and pauses while hidden', async (page) => {
  await page.goto('/status?refresh=5s');
  let asked = 0;
  page.on('request', (r) => { if (r.url().includes('/status')) asked++; });
  await page.evaluate(() => { document.querySelector('#main').dataset.refresh = '0.3'; Object.defineProperty(document, 'hidden', { configurable: true, get: () => window.away ?? false }); document.dispatchEvent(new Event('visibilitychange')); });
  await until(3e3, () => asked >= 1);
  await page.evaluate(() => { window.away = true; document.dispatchEvent(new Event('visibilitychange')); });
  await page.waitForTimeout(300);
  const before = asked;
  await page.evaluate(() => { document.querySelector('#main').dataset.refresh = '0.1'; document.dispatchEvent(new Event('visibilitychange')); });
  await page.waitForTimeout(700);
  equal(asked, before, 'requests while hidden');
  await page.evaluate(() => { window.away = false; document.dispatchEvent(new Event('visibilitychange')); });
  await until(3e3, () => asked > before);
});

test('the log of operations pages by cursor, and finds by id, key and request id', async (page) => {
  await page.goto('/operations?tenant=acme');
  const first = await page.locator('td.id').allInnerTexts();
  equal(first.length, 50, 'rows');
  await page.locator('a[rel=next]').click();
  await page.waitForURL(/cursor=/);
  await page.locator('a', { hasText: 'the latest' }).waitFor();
  const second = await page.locator('td.id').allInnerTexts();
  equal(second.filter((id) => first.includes(id)), [], 'rows on both pages');
  const row = page.locator('tbody tr').first();
  const [key, request] = [await row.locator('td').nth(12).innerText(), await row.locator('td').nth(13).innerText()];
  for (const [label, value] of [['logical id', second[0]], ['idempotency key', key], ['provider request id', request]]) {
    await page.goto('/operations');
    await page.locator('.search').getByLabel(label).fill(value);
    await page.getByRole('button', { name: 'Search' }).click();
    await page.locator('.search').getByLabel(label).and(page.locator(`[value="${value}"]`)).waitFor();
    equal(await page.locator('td.id').allInnerTexts(), [second[0]], label);
  }
});
