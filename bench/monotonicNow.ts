/** Milliseconds of the machine's monotonic clock. All processes on a machine read the same one, so stamps can be compared. */
export const monotonicNow = (): number => Number(process.hrtime.bigint()) / 1e6
