// What a page says when it is opened from an alert, when nothing is there, when a parameter is
// wrong, and when the service goes away.
import { test, check, equal } from './harness.mjs';
import { isTheAlert } from './world.mjs';

test('an alert leads to what it saw', async (page, world) => {
  const alert = world.lines.map((l) => JSON.parse(l)).find(isTheAlert);
  const link = new URL(alert.generator_url);
  await page.goto(link.pathname + link.search);
  check((await page.locator('.chip b').allInnerTexts()).includes('openai'), 'no filter of the alert');
  check(await page.locator('li.alert.firing', { hasText: alert.labels.alertname }).count() > 0, 'the alert is not on its page');
  check(/Masked outage|Outage/.test(await page.locator('.verdict strong').innerText()), await page.locator('.verdict').innerText());
  const [effective, actual] = (await page.locator('.success .value').allInnerTexts()).map(parseFloat);
  check(effective - actual > 10, `effective ${effective}, actual ${actual}`);
  await page.locator('.verdict a.id').click();
  await page.locator('table.waterfall').waitFor();
});

test('the verdict names the provider in trouble, not the flaky one', async (page) => {
  await page.goto('/?tenant=acme');
  const verdict = await page.locator('.verdict').innerText();
  check(/^Masked outage of (acme \/ )?openai/.test(verdict), verdict); // the detector's names the tenant, the window's does not
  check(/since 20\d\d-/.test(verdict), verdict);
});

test('empty says which filter emptied it and offers a wider range', async (page) => {
  await page.goto('/operations?model=none&provider=openai');
  check((await page.locator('main').innerText()).includes('Without the filter model'), 'the filter is not named');
  check(await page.locator('.banner a', { hasText: '24 h' }).count() === 1, 'no wider range');
  for (const path of ['/', '/errors', '/layers', '/spend']) {
    await page.goto(`${path}?model=none`);
    check((await page.locator('main').innerText()).includes('Without the filter model'), path);
  }
  await page.goto('/?tenant=none');
  check((await page.locator('main').innerText()).includes('Without the filter tenant'), 'the tenant is not named');
  await page.goto('/?from=2021-01-01&to=2021-01-02');
  check((await page.locator('main').innerText()).includes('No operation is in this window'), 'an empty window');
});

test('a wrong parameter is named', async (page) => {
  const answer = await page.goto('/?from=yesterday&tz=Mars');
  equal(answer.status(), 422, 'status');
  const text = await page.locator('.banner.error').innerText();
  check(text.includes('from') && text.includes('tz'), text);
  await page.locator('.banner.error a').click();
  await page.locator('.verdict').waitFor();
}, { expects: /422/ });

test('no such page and no such operation', async (page) => {
  equal((await page.goto('/nowhere')).status(), 404, 'status');
  equal((await page.goto('/op/none')).status(), 404, 'status');
  check((await page.locator('main').innerText()).includes('No such operation'), 'not said');
}, { expects: /404/ });

test('an error keeps the old data under a banner', async (page) => {
  await page.goto('/?from=now-1h');
  const before = await page.locator('.verdict').innerText();
  await page.route('**/*', (r) => r.abort());
  await page.locator('nav.ranges a', { hasText: '6 h' }).click();
  await page.locator('.kept').waitFor();
  equal(await page.locator('.verdict').innerText(), before, 'what is below');
  await page.unroute('**/*');
  await page.route('**/errors*', (r) => r.fulfill({ status: 500, body: 'no' }));
  await page.locator('nav.ranges a', { hasText: '24 h' }).click();
  await page.locator('.kept').waitFor({ state: 'detached' });
}, { expects: /ERR_FAILED/ });

test('data that has stopped coming says so', async (page) => {
  await page.goto('/?tenant=strange&from=now-6h');
  check(/No operation has started since/.test(await page.locator('main').innerText()), 'not said');
});
