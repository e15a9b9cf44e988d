// The world of the browser tests: a simulated day that ends now in a masked outage, an hour
// of records whose names are hostile, the real binaries on free ports.
import { spawn, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = new URL('../../', import.meta.url).pathname;
const bin = (name) => join(root, 'bin', name);

export const hostile = `"><script>window.ran=1</script><img src=x onerror="window.ran=1">'=cmd()\u202etxt\u2066`;
export const formula = '=HYPERLINK("http://127.0.0.1/","x")';

/** simulated are the arguments of a day in trouble in its last 40 minutes, of which the last 10 are to come. */
const simulated = ['--start', 'now-23h50m', '--scenario', 'side_by_side', '--seed', '1', '--hours', '24', '--at', '23h20m', '--for', '40m', '--ops-per-minute', '40'];

/**
 * startWorld imports the records and starts analyze serve. Without arguments of its own it then goes on
 * for as long as it takes until the alert that the tests open has fired: records arrive as they happen.
 */
export async function startWorld(sim) {
  const dir = mkdtempSync(join(tmpdir(), 'retrylens-ui-'));
  const env = { ...process.env, RETRYLENS_STORE: `embedded:${join(dir, 'store')}` };
  const run = (name, ...args) => execFileSync(bin(name), args, { env, stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 28 }).toString();
  const day = join(dir, 'day.ndjson');
  run('ingest', 'sim', ...(sim ?? simulated), '--out', day);
  let feed;
  if (sim) {
    run('ingest', 'import', day);
    run('analyze', 'finalise', '--once', '--min-age', '1s');
  } else {
    feed = new Feed(day, env);
    await feed.send();
    const strange = join(dir, 'strange.ndjson');
    writeFileSync(strange, strangeRecords().map((r) => JSON.stringify(r)).join('\n') + '\n');
    run('ingest', 'import', strange);
  }
  rmSync(day);
  const serve = await startServe(env, dir);
  if (feed) {
    await until(240e3, async () => {
      await feed.send();
      return serve.lines.map((l) => JSON.parse(l)).some(isTheAlert);
    }, 1000);
  }
  return { dir, run, ...serve, stop: async () => { await serve.end(); await stopEngine(run, join(dir, 'store')); await remove(dir); } };
}

/** isTheAlert tells the alert that the tests open. */
export const isTheAlert = (a) => a.status === 'firing' && a.labels.provider === 'openai';

/** Feed imports the records of a file as they happen. */
class Feed {
  constructor(file, env) {
    this.env = env;
    this.rest = readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => {
      const r = JSON.parse(line);
      return { line, ended: Date.parse(r.started_at) + r.duration_ms };
    });
  }

  /** send imports what has ended since the last call. */
  async send() {
    const now = Date.now();
    const due = this.rest.filter((r) => r.ended <= now);
    this.rest = this.rest.filter((r) => r.ended > now);
    if (!due.length) return;
    const child = spawn(bin('ingest'), ['import', '-'], { env: this.env, stdio: ['pipe', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (b) => { said += b; });
    child.stdin.end(due.map((r) => r.line + '\n').join(''));
    const code = await new Promise((done) => child.on('exit', done));
    if (code) throw new Error(`ingest import ended with ${code}:\n${said}`);
  }
}

/** remove takes a directory away in which an engine that is ending may still write. */
const remove = (dir) => until(60e3, () => { rmSync(dir, { recursive: true, force: true }); return true; });

/** stopEngine ends the engine of a store that nobody uses any more; it holds no status then. */
async function stopEngine(run, store) {
  try {
    process.kill(JSON.parse(run('engine', 'status', '--data', store)).pid, 'SIGTERM');
  } catch { return; } // it has ended by itself
  await until(30e3, () => { try { run('engine', 'status', '--data', store); return false; } catch { return true; } });
}

function strangeRecords() {
  const out = [];
  for (let i = 0; i < 60; i++) {
    const at = new Date(Date.now() - 40 * 60e3 + i * 20e3);
    const id = `${hostile}${i}/../%2f?#`;
    const record = (attempt, start, rest) => ({
      tenant: 'strange', logical_id: id, operation_started_at: at.toISOString(), attempt, cause: attempt ? 'policy' : 'first', service: hostile, operation: formula, provider: 'p' + hostile.toLowerCase().slice(0, 40),
      model: formula, started_at: new Date(+at + start).toISOString(), duration_ms: 500, provider_request_id: hostile, idempotency_key: hostile, prompt_tokens: 10, completion_tokens: 5, cost_usd: '0.000000000001', emitter: hostile.slice(0, 60), ...rest,
    });
    out.push(record(0, 0, { outcome: 'error', error_class: 'server_error', provider_error_type: hostile, status: 500, retry_after_ms: 4000, delay_ms: 900, seq: 3 * i }));
    out.push(record(1, 1500, { outcome: 'success', final: true, status: 200, seq: 3 * i + 1 }));
  }
  return out;
}

/** startServe starts analyze serve and waits until it is ready; lines are what it writes to stdout. */
function startServe(env, dir) {
  const lines = [];
  const args = ['serve', '--listen', '127.0.0.1:0', '--log-json', '--alerts-to-stdout', '--evaluate-every', '1s', '--external-url', 'http://ui.invalid'];
  const child = spawn(bin('analyze'), args, { env, cwd: dir });
  let log = '';
  createInterface({ input: child.stdout }).on('line', (l) => lines.push(l));
  const ended = new Promise((done) => child.on('exit', done));
  const end = async () => { child.kill('SIGTERM'); await ended; };
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`analyze serve did not listen:\n${log}`)), 30e3);
    child.stderr.on('data', async (b) => {
      log += b;
      const addr = /"addr":"([^"]+)"/.exec(log)?.[1];
      if (!addr || child.address) return;
      child.address = addr;
      clearTimeout(late);
      const url = `http://${addr}`;
      await until(30e3, async () => (await fetch(`${url}/readyz`)).ok);
      resolve({ url, lines, end, pid: child.pid });
    });
    child.on('exit', (code) => reject(new Error(`analyze serve ended with ${code}:\n${log}`)));
  });
}

/** until asks again and again until the answer is true. */
export async function until(ms, ask, pause = 100) {
  for (const end = Date.now() + ms; ;) {
    let why = 'it stayed false';
    try { if (await ask()) return; } catch (e) { why = e; }
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${why}`);
    await new Promise((r) => setTimeout(r, pause));
  }
}
