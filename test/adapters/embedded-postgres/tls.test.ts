/** TLS to a real PostgreSQL: what `sslmode=verify-full` in DATABASE_URL lets through, and what it does not. */
import { chownSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Exit, Redacted, Scope } from "effect"
import pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { accountFor } from "../../../src/adapters/embedded-postgres/account.ts"
import * as EmbeddedPostgres from "../../../src/adapters/embedded-postgres/EmbeddedPostgres.ts"
import { migrateAt } from "../../../src/adapters/postgres/Postgres.ts"
import { startupErrorOf } from "../../../src/setup/startupError.ts"
import { temporaryDirectory } from "../../servers/leftovers.ts"
import { signed } from "../channels/net/certificate.ts"

const home = temporaryDirectory()
const scope = Scope.makeUnsafe()
const file = (name: string) => join(home, name)
let plain: URL

beforeAll(async () => {
  const [own, another] = [signed("localhost", ["localhost"]), signed("localhost", ["localhost"])]
  const files = {
    "server.crt": own.cert + own.between,
    "server.key": own.key,
    "root.crt": own.root,
    "another.crt": another.root
  }
  const account = await Effect.runPromise(accountFor([home], null))
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(file(name), text, { mode: 0o600 })
    if (account !== null) chownSync(file(name), account.uid, account.gid)
  }
  const settings = { fsync: "off", ssl: "on", ssl_cert_file: file("server.crt"), ssl_key_file: file("server.key") }
  const started = EmbeddedPostgres.start({ directory: join(home, "data"), settings })
  plain = new URL(Redacted.value((await Effect.runPromise(Scope.provide(started, scope))).url))
})

afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(home, { recursive: true, force: true })
})

const urlWith = (host: string, certificate: string, mode = "verify-full") => {
  const url = new URL(plain)
  url.hostname = host
  url.search = new URLSearchParams({ sslmode: mode, sslrootcert: file(certificate) }).toString()
  return url.href
}

const migrated = (url: string, schema: string) =>
  Effect.runPromiseExit(Effect.scoped(migrateAt(Redacted.make(url), schema)))

describe("sslmode=verify-full", () => {
  it("works with the authority of the server's certificate, by way of the one between, and the connection is encrypted", async () => {
    const url = urlWith("localhost", "root.crt")
    expect(Exit.isSuccess(await migrated(url, "posthaste"))).toBe(true)
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    const { rows } = await client.query("select ssl, version from pg_stat_ssl where pid = pg_backend_pid()")
    await client.end()
    expect(rows).toEqual([{ ssl: true, version: expect.stringMatching(/^TLSv1\.[23]$/) }])
  })

  it.each([
    ["another authority", "localhost", "another.crt"],
    ["another name than the certificate's", "127.0.0.1", "root.crt"]
  ])("refuses %s, in one line", async (_, host, certificate) => {
    const exit = await migrated(urlWith(host, certificate), "refused")
    expect(Exit.isFailure(exit)).toBe(true)
    if (Exit.isFailure(exit))
      expect(startupErrorOf(exit.cause)).toMatch(/^posthaste: .*(certificate|altnames|IP)[^\n]*$/i)
  })
})
