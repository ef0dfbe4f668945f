/**
 * docs/testing-receivers.md: its script is run as it stands there, beside the receiver of the README, and tells a receiver that
 * believes everybody; its signatures are those that receivers believe.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { verify } from "../../sdk/src/webhooks.ts"
import { lastingPort } from "../servers/lastingPort.ts"
import { temporaryDirectory } from "../servers/leftovers.ts"
import { runProgramToEnd } from "../servers/posthaste.ts"
import { until } from "../servers/until.ts"

const root = join(import.meta.dirname, "../..")
const page = readFileSync(join(root, "docs/testing-receivers.md"), "utf8")
const readme = readFileSync(join(root, "README.md"), "utf8")

const blockOf = (text: string, first: string): string => {
  const found = [...text.matchAll(/^```\w+\n(.*?)^```/gms)]
    .map(([, code]) => code!)
    .filter((each) => each.includes(first))
  expect(found, first).toHaveLength(1)
  return found[0]!
}

const script = blockOf(page, "# webhooks-test.sh")
const [, secret] = /WEBHOOK_SECRET: (whsec_\S+)/.exec(page)!

/** What the script asks of curl, on machines that have none. */
const curl = `#!${process.execPath}
const { parseArgs } = require("node:util")
const text = { type: "string" }
const options = { s: { type: "boolean", short: "s" }, f: { type: "boolean", short: "f" }, o: { ...text, short: "o" },
  w: { ...text, short: "w" }, d: { ...text, short: "d" }, H: { ...text, short: "H", multiple: true } }
const { values, positionals: [url] } = parseArgs({ options, allowPositionals: true })
const headers = values.H.map((line) => line.split(": "))
fetch(url, { method: "POST", headers, body: values.d }).then(async (response) => {
  const body = await response.text()
  console.log(values.w === undefined ? body : response.status)
  process.exitCode = values.f && !response.ok ? 22 : 0
})`

let home = ""
const started: Array<ChildProcess> = []

beforeAll(() => {
  home = temporaryDirectory()
  writeFileSync(join(home, "curl"), curl)
  chmodSync(join(home, "curl"), 0o755)
  writeFileSync(join(home, "webhooks-test.sh"), script)
})

afterAll(() => {
  for (const child of started) child.kill("SIGKILL")
  rmSync(home, { recursive: true, force: true })
})

const runScript = (receiver: string) =>
  runProgramToEnd("/bin/sh", [join(home, "webhooks-test.sh")], {
    PATH: `${home}:${process.env["PATH"]}`,
    TMPDIR: home,
    POSTHASTE: root,
    RECEIVER: receiver,
    WEBHOOK_SECRET: secret!
  })

/** The receiver of the README, on another port. */
const receiverOfReadme = async (): Promise<string> => {
  const port = await lastingPort()
  const file = join(home, "receiver.mjs")
  writeFileSync(file, blockOf(readme, "// receiver.mjs").replace("listen(9000,", `listen(${port},`))
  started.push(spawn(process.execPath, [file], { env: { WEBHOOK_SECRET: secret! }, stdio: "ignore" }))
  const url = `http://127.0.0.1:${port}/`
  const listens = () =>
    fetch(url).then(
      () => true,
      () => false
    )
  await until("the receiver", listens)
  return url
}

describe("the script for CI", () => {
  it("passes where the receiver verifies, and fails where it believes everybody", async () => {
    const credulous = createServer((request, response) => request.resume().on("end", () => response.end()))
    await once(credulous.listen(0, "127.0.0.1"), "listening")
    const [good, bad] = await Promise.all([
      receiverOfReadme().then(runScript),
      runScript(`http://127.0.0.1:${(credulous.address() as AddressInfo).port}/`)
    ])
    credulous.close().closeAllConnections()
    expect(good, good.out + good.err).toMatchObject({ code: 0 })
    expect(good.out.match(/^DELIVERED {2}/gm)).toHaveLength(2)
    expect(bad, bad.out + bad.err).toMatchObject({ code: 1 })
    expect(bad.out, bad.err).toContain("a request without a signature was answered 200")
  })
})

describe("the headers that a test makes", () => {
  it("are believed, also once more, until the body or the time is another", async () => {
    writeFileSync(join(home, "signed.mjs"), blockOf(page, "// signed.mjs"))
    const { signed } = (await import(join(home, "signed.mjs"))) as {
      readonly signed: (secret: string, id: string, body: string, now?: number) => Record<string, string>
    }
    const body = '{"order":4711,"total":1.10}'
    const headers = signed(secret!, "m-1", body)
    for (const _ of [1, 2]) expect(await verify(headers, body, secret!)).toMatchObject({ id: "m-1" })
    await expect(verify(headers, `${body} `, secret!)).rejects.toThrow()
    const old = signed(secret!, "m-1", body, Date.now() - 6 * 60_000)
    await expect(verify(old, body, secret!)).rejects.toThrow()
    const both = {
      ...headers,
      "webhook-signature": `v1,${Buffer.alloc(32).toString("base64")} ${headers["webhook-signature"]}`
    }
    expect(await verify(both, body, secret!)).toMatchObject({ id: "m-1" })
    await expect(verify({}, body, secret!)).rejects.toThrow()
  })
})
