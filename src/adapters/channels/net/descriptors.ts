/**
 * Whether this process has used up its file descriptors, or the system's buffers: then a connection that can't be made, a
 * nameserver that can't be asked and a file that can't be read say nothing about the other side.
 */
import { closeSync, openSync } from "node:fs"

export const areUsedUp = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  (error.code === "EMFILE" || error.code === "ENFILE" || error.code === "ENOBUFS")

/** The error that opening anything meets now; null when a descriptor is left. */
export const lackOfDescriptors = (): Error | null => {
  try {
    closeSync(openSync("/dev/null", "r"))
    return null
  } catch (error) {
    return areUsedUp(error) ? (error as Error) : null
  }
}
