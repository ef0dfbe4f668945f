/** A process that has no file descriptor left says so, and not that the other side is to blame. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { outcomeOfFailure } from "../../../../src/domain/delivery/classify.ts"

const program = join(import.meta.dirname, "withoutDescriptors.ts")
const server = createServer((_, response) => response.end())
let directory: string

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "posthaste-"))
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
})
afterEach(() => {
  server.close()
  rmSync(directory, { recursive: true, force: true })
})

describe("a process without file descriptors", () => {
  it("blames nobody else for a connection or a name, and is well again when it has some", async () => {
    const { port } = server.address() as AddressInfo
    const command = 'ulimit -n 128 && exec "$0" "$@"'
    const { stdout } = await promisify(execFile)("/bin/sh", [
      ...["-c", command, process.execPath, program],
      ...[String(port), directory]
    ])
    const theirs = {
      address: "connected",
      tls: "tls_failed",
      written: "connected",
      asked: "dns_failed",
      amqp: "connection_failed"
    }
    const ours = Object.fromEntries(Object.keys(theirs).map((way) => [way, "no_descriptors"]))
    expect(JSON.parse(stdout)).toEqual({ before: theirs, without: ours, after: theirs })
    expect(outcomeOfFailure("no_descriptors", 0)).toMatchObject({ type: "Deferred", scope: "message" })
  })
})
