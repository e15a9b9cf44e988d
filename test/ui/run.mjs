// Browser tests of the pages: node run.mjs [part of a name].
import { startWorld } from './world.mjs';
import { runAll } from './harness.mjs';
import './states.test.mjs'; // first: an alert fires while its cause is fresh
import './pages.test.mjs';
import './use.test.mjs';
import './exports.test.mjs';

setTimeout(() => { console.log('the browser tests did not end within 5 minutes'); process.exit(1); }, 300e3).unref();
const world = await startWorld();
let ok = false;
try {
  ok = await runAll(world);
} finally {
  await world.stop();
}
process.exit(ok ? 0 : 1);
