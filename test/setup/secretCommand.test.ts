/** A command that prints a key: what it prints is the key, and nothing it says is shown. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { ConfigProvider, Duration, Effect, Redacted } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { callSettings, settings } from "../../src/setup/config.ts"
import { outputOf } from "../../src/setup/variables.ts"

const directory = mkdtempSync(join(tmpdir(), "posthaste-command-"))
afterAll(() => rmSync(directory, { recursive: true }))

const key = Buffer.alloc(32, 7).toString("base64")
const older = Buffer.alloc(32, 8).toString("base64")
const secret = "never-shown-anywhere"

const read = (env: Record<string, string>) =>
  settings.pipe(
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env })),
    Effect.match({
      onFailure: ({ message }) => message,
      onSuccess: ({ encryptionKeys, operatorKeys, operatorKeyFile }) => ({
        encryption: encryptionKeys?.map((one) => Buffer.from(Redacted.value(one)).toString("base64")),
        operator: operatorKeys?.map(Redacted.value),
        operatorKeyFile
      })
    }),
    Effect.runPromise
  )

describe("a key from a command", () => {
  it("is what the command prints", async () => {
    expect(
      await read({
        POSTHASTE_ENCRYPTION_KEY_COMMAND: `printf '  %s\\n' ${key}; echo complaint >&2`,
        POSTHASTE_OPERATOR_KEY_COMMAND: "echo an-operator-key-of-length and-another-one-of-length"
      })
    ).toEqual({
      encryption: [key],
      operator: ["an-operator-key-of-length", "and-another-one-of-length"],
      operatorKeyFile: null
    })
    expect(await read({ POSTHASTE_ENCRYPTION_KEYS_COMMAND: `echo ${key}; echo ${older}` })).toMatchObject({
      encryption: [key, older]
    })
  })

  it("is found by the command line too", async () => {
    const env = { POSTHASTE_OPERATOR_KEY_COMMAND: "echo an-operator-key-of-length" }
    const { operatorKey } = await callSettings.pipe(
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env })),
      Effect.runPromise
    )
    expect(Redacted.value(operatorKey!)).toBe("an-operator-key-of-length")
  })

  it.each([
    ["ends badly", `echo ${secret}; echo ${secret} >&2; exit 3`, /^POSTHASTE_ENCRYPTION_KEY_COMMAND ended with 3\. /],
    ["is not there", `no-such-command-${secret}`, /^POSTHASTE_ENCRYPTION_KEY_COMMAND ended with 127: there is no such/],
    ["is killed", "kill -9 $$", /^POSTHASTE_ENCRYPTION_KEY_COMMAND ended with SIGKILL/],
    ["prints nothing", `echo ${secret} >&2`, /^POSTHASTE_ENCRYPTION_KEY_COMMAND printed nothing/],
    ["prints no key", `echo ${secret}`, /^POSTHASTE_ENCRYPTION_KEY_COMMAND must be 32 random bytes/],
    ["prints without end", `yes ${secret}`, /^POSTHASTE_ENCRYPTION_KEY_COMMAND printed more than 65536 bytes/]
  ])("is missed in one line when the command %s", async (_, command, line) => {
    const said = await read({ POSTHASTE_ENCRYPTION_KEY_COMMAND: command })
    expect(said).toMatch(line)
    expect(said).not.toContain(secret)
    expect(String(said).split("\n")).toHaveLength(1)
  })

  it("has one source", async () => {
    const command = { POSTHASTE_ENCRYPTION_KEY_COMMAND: `echo ${key}` }
    expect(await read({ ...command, POSTHASTE_ENCRYPTION_KEY: key })).toBe(
      "POSTHASTE_ENCRYPTION_KEY is given beside POSTHASTE_ENCRYPTION_KEY_COMMAND"
    )
    expect(await read({ ...command, POSTHASTE_ENCRYPTION_KEY_FILE: "/a" })).toBe(
      "POSTHASTE_ENCRYPTION_KEY_FILE is given beside POSTHASTE_ENCRYPTION_KEY_COMMAND"
    )
    expect(await read({ ...command, POSTHASTE_ENCRYPTION_KEYS: key })).toMatch(
      /is given beside POSTHASTE_ENCRYPTION_KEYS/
    )
  })

  it("is not waited for without end, and what the command has started ends with it", async () => {
    const pid = join(directory, "pid")
    // The shell's child holds the output open. On a busy machine it may not have begun by then: it gets more time.
    for (let ms = 500; !existsSync(pid); ms *= 2) {
      const slow = outputOf(`(echo $$ > ${pid}.new; mv ${pid}.new ${pid}; exec sleep 600) & wait`, Duration.millis(ms))
      expect(await Effect.runPromise(Effect.flip(slow))).toBe(`did not end within ${ms / 1000} s`)
    }
    const group = Number(readFileSync(pid, "utf8"))
    const isThere = () => {
      try {
        process.kill(-group, 0)
        return true
      } catch {
        return false
      }
    }
    await expect.poll(isThere, { timeout: 30_000 }).toBe(false)
  })
})
