// The enhancer of the pages: it swaps <main> instead of loading pages, refreshes, reads keys,
// copies, and draws charts that can be brushed. The pages work without it, and nothing is
// shown here that they do not hold.
import { drawCharts } from './charts';
import { listenToKeys } from './keys';
import { navigate, listenToLinks } from './pages';
import { addZone, listenToPrint, say } from './small';

function enhance(): void {
  drawCharts(navigate);
  addZone();
}

document.documentElement.classList.add('enhanced');
listenToLinks(enhance);
listenToKeys(navigate, say);
listenToPrint();
enhance();
