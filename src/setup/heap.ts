/**
 * How V8 keeps the heap of the service.
 *
 * It watches which places of the code make objects that live long, and makes those of the future among the old ones at once. Here that
 * guess goes wrong and confirms itself: what a burst made lived until it was answered, so its successors are made old, and dead as they
 * are they keep alive what they name. Each accepted request was carried into the old generation so, 100 MB in 15,000 requests instead of
 * one, and each scavenge took three times as long.
 *
 * It lets the old generation grow to several times what lives in it before it looks for what is dead. Bodies of 200 kB that one org sent
 * made 100 living megabytes into 700 so, and the process had 1.3 GB. At two and a half times it had 0.85.
 * At twice 0.69, but listing messages took some percent more of the processor.
 */
import { setFlagsFromString } from "node:v8"

/** Before the first request. */
export const keepHeapSmall = (): void => {
  setFlagsFromString("--no-allocation-site-pretenuring")
  setFlagsFromString("--heap-growing-percent=150")
}
