/**
 * Detects that this process has no file descriptors or buffers left: failures then say nothing about the other side.
 */
import { closeSync, openSync } from "node:fs"

export const areUsedUp = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  (error.code === "EMFILE" || error.code === "ENFILE" || error.code === "ENOBUFS")

/** Error of opening any file; null when a descriptor is left. */
export const lackOfDescriptors = (): Error | null => {
  try {
    closeSync(openSync("/dev/null", "r"))
    return null
  } catch (error) {
    return areUsedUp(error) ? (error as Error) : null
  }
}
