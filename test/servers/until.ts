/** Waiting for what other processes do: for as long as a machine may need that is busy with many other things. */
export const PATIENCE_MS = 120_000

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** Looks again and again; fails in words when it does not come about. */
export const until = async (
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = PATIENCE_MS
): Promise<void> => {
  const deadline = performance.now() + withinMs
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`${what} did not come about within ${withinMs / 1000} s`)
    await pause(20)
  }
}
