// Exports are exactly what the page asked, and read back equal to the API's JSON.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parquetReadObjects } from 'hyparquet';
import { decompress } from 'fzstd';
import { test, check, equal } from './harness.mjs';

const compressors = { ZSTD: (input) => decompress(input) };

const download = async (page, keys) => {
  const [file] = await Promise.all([page.waitForEvent('download'), (async () => { for (const k of keys) await page.keyboard.press(k); })()]);
  return { name: file.suggestedFilename(), url: file.url(), bytes: readFileSync(await file.path()) };
};

/** parseCSV reads RFC 4180. */
export function parseCSV(text) {
  const rows = [[]];
  let cell = '', quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) { if (c !== '"') cell += c; else if (text[i + 1] === '"') { cell += c; i++; } else quoted = false; }
    else if (c === '"') quoted = true;
    else if (c === ',' || c === '\n') { rows.at(-1).push(cell); cell = ''; if (c === '\n') rows.push([]); }
    else if (c !== '\r') cell += c;
  }
  rows.pop();
  const [head, ...lines] = rows;
  return lines.map((l) => Object.fromEntries(head.map((h, i) => [h, l[i]])));
}

for (const [name, path, list] of [['report', '/errors?from=now-2h&tenant=acme&service=', 'rows'], ['operations', '/operations?from=now-50m&to=now-45m&tenant=acme', 'operations']]) {
  test(`CSV, Parquet and JSON of ${name} are the same, and the manifest's`, async (page) => {
    await page.goto(path);
    const csv = await download(page, ['e', 'c']);
    const parquet = await download(page, ['e', 'p']);
    const json = await download(page, ['e', 'j']);
    equal([csv.name, parquet.name], [`${name}.csv`, `${name}.parquet`], 'names');
    check(new URL(csv.url).searchParams.get('as_of') && new URL(csv.url).searchParams.get('tenant') === 'acme', csv.url);
    const lines = parseCSV(csv.bytes.toString());
    const api = JSON.parse(json.bytes)[list];
    check(lines.length > 0 && api.length > 0, 'nothing was exported');
    const rows = await parquetReadObjects({ file: csv && arrayBuffer(parquet.bytes), compressors });
    equal(rows.length, lines.length, 'rows of Parquet');
    api.slice(0, 50).forEach((want, i) => {
      for (const key of ['tenant', 'provider', 'model', 'logical_id', 'attempts', 'upstream_calls', 'billed_cost_usd', 'orphaned_cost_usd', 'operations', 'amplification']) {
        if (!(key in want)) continue;
        equal(lines[i][key], String(want[key] ?? ''), `CSV, row ${i}, ${key}`);
        if (key.endsWith('_usd')) check(Math.abs(Number(rows[i][key]) - Number(want[key])) < 1e-9, `Parquet, row ${i}, ${key}: ${rows[i][key]}`);
        else equal(String(rows[i][key] ?? ''), String(want[key] ?? ''), `Parquet, row ${i}, ${key}`);
      }
    });
    const href = await page.locator('nav.exports a', { hasText: 'manifest' }).getAttribute('href');
    const manifest = await (await page.request.get(href)).json();
    equal([manifest.rows, manifest.files[0].bytes], [lines.length, csv.bytes.length], 'manifest');
    equal(manifest.files[0].sha256, createHash('sha256').update(csv.bytes).digest('hex'), 'hash');
    const again = await page.request.get(manifest.files[0].url);
    equal(await again.text(), csv.bytes.toString(), "the manifest's address");
  });
}

const arrayBuffer = (b) => b.buffer.slice(b.byteOffset, b.byteOffset + b.byteLength);

test('no cell of an exported file is a formula', async (page) => {
  await page.goto('/operations?tenant=strange&from=now-2h');
  const csv = await download(page, ['e', 'c']);
  const lines = parseCSV(csv.bytes.toString());
  check(lines.length > 0, 'no rows');
  let kept = 0;
  for (const line of lines) {
    for (const [name, value] of Object.entries(line)) check(!/^[=+@\t\r]/.test(value), `${name}: ${value}`);
    if (line.model.startsWith("'=HYPERLINK")) kept++;
  }
  equal(kept, lines.length, 'models that were a formula');
});
