// Bundles ts/app.ts into static/dist, which the Go package embeds.
import { build } from 'esbuild';

await build({
  entryPoints: [new URL('ts/app.ts', import.meta.url).pathname],
  outdir: new URL('static/dist', import.meta.url).pathname,
  bundle: true, minify: true, format: 'esm', target: 'es2022', legalComments: 'none', logLevel: 'warning',
});
