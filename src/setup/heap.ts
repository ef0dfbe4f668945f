/**
 * V8's heap flags for the service.
 *
 * Pretenuring allocates by a site's history: objects of a burst live until answered, so later ones start in the old
 * generation and keep garbage alive. It cost 100 MB in 15,000 requests instead of 1 MB, and three times the scavenges'
 * time.
 *
 * A growing percent of 150 collects the old generation at 2.5 times its live size. With bodies of 200 kB it took 0.85
 * GB, 1.3 GB by default; 100 percent took 0.69 GB and made listing slower.
 */
import { setFlagsFromString } from "node:v8"

/** To be called before the first request. */
export const keepHeapSmall = (): void => {
  setFlagsFromString("--no-allocation-site-pretenuring")
  setFlagsFromString("--heap-growing-percent=150")
}
