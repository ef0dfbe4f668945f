/** What a start finds where EVENTSTORE_URL says, and what becomes of requests when a leader stands still. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it, vi } from "@effect/vitest"
import services from "@eventstore/db-client/generated/streams_grpc_pb.js"
import { Deferred, Effect, Fiber, Layer, Logger, Redacted } from "effect"
import * as EventStoreDb from "../../../src/adapters/eventstoredb/EventStoreDb.ts"
import { find } from "../../../src/adapters/eventstoredb/findServer.ts"
import { Streams } from "../../../src/application/ports/Streams.ts"
import type { MessageId } from "../../../src/domain/ids.ts"
import { EventLog } from "../../servers/eventStore/EventLog.ts"
import type { Member } from "../../servers/eventStore/protocol.ts"
import { eventStore } from "../../servers/eventStore.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"
import { lastingPort } from "../../servers/lastingPort.ts"
import { ownDirectory } from "../../servers/leftovers.ts"
import { runToEnd, startPosthaste, stop } from "../../servers/posthaste.ts"
import { operatorKey } from "../../servers/product.ts"
import { proxyTo } from "../../servers/proxy.ts"
import { PATIENCE_MS } from "../../servers/until.ts"
import { selfSigned } from "../channels/net/certificate.ts"

const { key, cert } = selfSigned("localhost")
const secured = { key, cert, user: "admin", password: "changeit" }

const settingsFor = (database: Redacted.Redacted, url: string) => ({
  DATABASE_URL: Redacted.value(database),
  POSTHASTE_OPERATOR_KEY: operatorKey,
  POSTHASTE_ENCRYPTION_KEY: Buffer.alloc(32, 5).toString("base64"),
  EVENTSTORE_URL: url
})

/** How a look at the server ends. */
const said = (url: string) =>
  Effect.scoped(Layer.build(EventStoreDb.layer(Redacted.make(url), "fail"))).pipe(
    Effect.as("let in"),
    Effect.catch(({ message }) => Effect.succeed(message))
  )

const files = Effect.map(ownDirectory, (directory) => {
  const file = join(directory, "ca.crt")
  writeFileSync(file, cert)
  return { directory, file }
})

describe("a start with EventStoreDB", () => {
  it.live("is let in with the certificate authority's file, user and password", () =>
    Effect.gen(function* () {
      const { file } = yield* files
      const { port } = yield* eventStore({ secured })
      expect(yield* said(`esdb://admin:changeit@localhost:${port}?tls=true&tlsCAFile=${file}`)).toBe("let in")
    })
  )

  it.live("says in one line what to change, and never a password", () =>
    Effect.gen(function* () {
      const { directory, file } = yield* files
      const { port } = yield* eventStore({ secured })
      const plain = yield* eventStore()
      const gone = yield* Effect.promise(lastingPort)
      const missing = join(directory, "missing.crt")
      const table: ReadonlyArray<readonly [url: string, says: string]> = [
        [
          `esdb://admin:changeit@localhost:${port}?tls=true&tlsCAFile=${missing}`,
          `EVENTSTORE_URL: tlsCAFile names ${missing}, which can't be read (ENOENT)`
        ],
        [
          `esdb://admin:changeit@localhost:${port}?tls=true`,
          `EventStoreDB at localhost:${port}: its certificate can't be verified (DEPTH_ZERO_SELF_SIGNED_CERT): name the file of its certificate authority, as tlsCAFile=/path/ca.crt in EVENTSTORE_URL or in NODE_EXTRA_CA_CERTS`
        ],
        [
          `esdb://admin:wrong@localhost:${port}?tls=true&tlsCAFile=${file}`,
          "EventStoreDB does not accept the user admin with the password in EVENTSTORE_URL"
        ],
        [
          `esdb://localhost:${port}?tls=true&tlsCAFile=${file}`,
          "EventStoreDB wants a user and a password: name them in EVENTSTORE_URL, as esdb://user:password@host:2113"
        ],
        [
          `esdb://admin:changeit@localhost:${port}?tls=false`,
          `EventStoreDB at localhost:${port} speaks TLS: take tls=false out of EVENTSTORE_URL`
        ],
        [
          `esdb://admin:changeit@localhost:${plain.port}?tls=true`,
          `EventStoreDB at localhost:${plain.port} speaks no TLS: give it a certificate, or add tls=false to EVENTSTORE_URL`
        ],
        [`esdb://localhost:${gone}?tls=false`, `EventStoreDB at localhost:${gone} is not there (ECONNREFUSED)`],
        [
          `esdb://localhost:${gone},localhost:${port}?tls=true`,
          `EventStoreDB at localhost:${port}: its certificate can't be verified (DEPTH_ZERO_SELF_SIGNED_CERT): name the file of its certificate authority, as tlsCAFile=/path/ca.crt in EVENTSTORE_URL or in NODE_EXTRA_CA_CERTS`
        ],
        [
          "esdb://admin:changeit@host:2113?tls=perhaps",
          "EVENTSTORE_URL: is no connection string of EventStoreDB, such as esdb://user:password@host:2113?tls=true"
        ]
      ]
      for (const [url, says] of table) expect(yield* said(url)).toBe(says)
      const otherName = yield* said(`esdb://admin:changeit@127.0.0.1:${port}?tls=true&tlsCAFile=${file}`)
      expect(otherName).toContain("its certificate is for other names")
      expect(otherName).not.toContain("\n")
    })
  )

  it.live("names a client certificate or key that can't be read, and a certificate that is not valid now", () =>
    Effect.gen(function* () {
      const { directory, file } = yield* files
      const { port } = yield* eventStore({ secured })
      const missing = join(directory, "missing.pem")
      for (const option of ["userCertFile", "userKeyFile"]) {
        const both = { userCertFile: file, userKeyFile: file, [option]: missing }
        const named = Object.entries(both).map(([name, path]) => `${name}=${path}`)
        expect(yield* said(`esdb://admin:changeit@localhost:${port}?tls=true&${named.join("&")}`)).toBe(
          `EVENTSTORE_URL: ${option} names ${missing}, which can't be read (ENOENT)`
        )
      }
      const past = selfSigned("localhost", false, ["200101000000Z", "200201000000Z"])
      const expired = yield* eventStore({ secured: { ...secured, ...past } })
      const authority = join(directory, "past.crt")
      writeFileSync(authority, past.cert)
      expect(yield* said(`esdb://admin:changeit@localhost:${expired.port}?tls=true&tlsCAFile=${authority}`)).toBe(
        `EventStoreDB at localhost:${expired.port}: its certificate is not valid now (CERT_HAS_EXPIRED): renew it, or set this machine's clock right`
      )
    })
  )

  it.live("names a file that holds no certificate, and a key that is not the certificate's", () =>
    Effect.gen(function* () {
      const { directory, file } = yield* files
      const { port } = yield* eventStore({ secured })
      const put = (name: string, text: string) => {
        writeFileSync(join(directory, name), text)
        return join(directory, name)
      }
      const [junk, empty, ownKey] = [put("junk.crt", "no certificate"), put("empty.crt", ""), put("own.key", key)]
      const another = selfSigned("localhost")
      const anotherKey = put("another.key", another.key)
      const started = (options: string) => said(`esdb://admin:changeit@localhost:${port}?tls=true&${options}`)
      for (const path of [junk, empty]) {
        const holdsNone = `names ${path}, which holds no certificate in PEM`
        expect(yield* started(`tlsCAFile=${path}`)).toBe(`EVENTSTORE_URL: tlsCAFile ${holdsNone}`)
        const asClient = `tlsCAFile=${file}&userCertFile=${path}&userKeyFile=${ownKey}`
        expect(yield* started(asClient)).toBe(`EVENTSTORE_URL: userCertFile ${holdsNone}`)
      }
      for (const path of [junk, empty, anotherKey]) {
        expect(yield* started(`tlsCAFile=${file}&userCertFile=${file}&userKeyFile=${path}`)).toBe(
          "EVENTSTORE_URL: userKeyFile names no private key in PEM that belongs to the userCertFile"
        )
      }
      expect(yield* started(`tlsCAFile=${file}&userCertFile=${file}&userKeyFile=${ownKey}`)).toBe("let in")
    })
  )

  it.live("does with one host that answers, and tells one that takes connections and says nothing from it", () =>
    Effect.gen(function* () {
      const { port } = yield* eventStore({ secured })
      const dumb = yield* proxyTo({ host: "127.0.0.1", port })
      dumb.fallSilent(true)
      const tls = { ca: cert }
      const [there, silent] = [
        { address: "localhost", port },
        { address: "127.0.0.1", port: dumb.port }
      ]
      // By its number the same server is not the one that its certificate names.
      const wrong = { address: "127.0.0.1", port }
      const found = yield* Effect.promise(() =>
        Promise.all([
          find({ hosts: [wrong, there], user: null, tls }),
          find({ hosts: [silent, wrong], user: null, tls }),
          find({ hosts: [silent], user: null, tls })
        ])
      )
      expect(found.map(({ type }) => type)).toEqual(["There", "Wrong", "Away"])
      expect(found[2]).toMatchObject({ says: `EventStoreDB at 127.0.0.1:${dumb.port} is not there (ETIMEDOUT)` })
    })
  )

  it.live("says in one line what a server says in many", () =>
    Effect.gen(function* () {
      const server = yield* eventStore()
      server.inject({ rpc: "read", fault: "unknown", times: 1_000 })
      expect(yield* said(server.url)).toMatch(/^EventStoreDB does not answer \([^\n]+\)$/)
    })
  )

  it.live("does not wait for what no waiting cures", () =>
    Effect.gen(function* () {
      const { file } = yield* files
      const { port } = yield* eventStore({ secured })
      const start = (url: string) =>
        Effect.scoped(Layer.build(EventStoreDb.layer(Redacted.make(url), "wait"))).pipe(
          Effect.as("let in"),
          Effect.catch(({ message }) => Effect.succeed(message)),
          Effect.timeout("60 seconds")
        )
      expect(yield* start(`esdb://admin:wrong@localhost:${port}?tls=true&tlsCAFile=${file}`)).toContain(
        "the user admin"
      )
      expect(yield* start(`esdb://admin:changeit@localhost:${port}?tls=true`)).toContain("can't be verified")
    })
  )

  it.live(
    "waits for a server that is not there, says so once, and goes on",
    () =>
      Effect.gen(function* () {
        const lines: Array<string> = []
        const waits = yield* Deferred.make<void>()
        const log = Logger.layer([
          Logger.make(({ message }) => {
            lines.push(String(message))
            Deferred.doneUnsafe(waits, Effect.void)
          })
        ])
        const server = yield* eventStore()
        server.down()
        const started = yield* Effect.forkChild(
          Effect.scoped(Layer.build(EventStoreDb.layer(Redacted.make(server.url), "wait"))).pipe(Effect.provide(log))
        )
        yield* Deferred.await(waits)
        yield* Effect.sleep("1200 millis")
        yield* Effect.promise(server.up)
        yield* Fiber.join(started)
        expect(lines).toEqual([
          `EventStoreDB at 127.0.0.1:${server.port} is not there (ECONNREFUSED): the start waits for it`,
          "EventStoreDB is there: the start goes on"
        ])
      }),
    PATIENCE_MS
  )

  it.live(
    "ends before the banner where no waiting helps; a certificate in NODE_EXTRA_CA_CERTS is honoured, and a numeric address prints no warning",
    () =>
      Effect.gen(function* () {
        const { directory } = yield* files
        const numeric = selfSigned("localhost", true)
        const { port } = yield* eventStore({ secured: { ...secured, ...numeric } })
        const database = yield* freshDatabase
        const url = `esdb://admin:changeit@127.0.0.1:${port}?tls=true`
        const refused = yield* Effect.promise(() => runToEnd(settingsFor(database, url)))
        expect(refused.exitCode).toBe(1)
        expect(refused.printed.trim()).toMatch(
          /^posthaste: EventStoreDB at 127\.0\.0\.1:\d+: its certificate can't be verified .*$/
        )

        const file = join(directory, "numeric.crt")
        writeFileSync(file, numeric.cert)
        const running = yield* Effect.promise(() =>
          startPosthaste({ ...settingsFor(database, url), NODE_EXTRA_CA_CERTS: file })
        )
        expect(yield* Effect.promise(() => stop(running))).toBe(0)
        expect(running.printed()).not.toContain("Warning")
      }),
    PATIENCE_MS * 2
  )
})

describe("a leader that stands still", () => {
  const cluster = Effect.gen(function* () {
    const log = new EventLog()
    let nodes: ReadonlyArray<Member> = []
    const wishes = { log, members: () => nodes }
    const leader = yield* eventStore(wishes)
    const follower = yield* eventStore(wishes)
    const proxy = yield* proxyTo({ host: "127.0.0.1", port: leader.port })
    const elect = (follows: boolean) => {
      nodes = [
        { port: proxy.port, leads: !follows, isAlive: !follows },
        { port: follower.port, leads: follows, isAlive: true }
      ]
    }
    elect(false)
    const url = `esdb://127.0.0.1:${proxy.port},127.0.0.1:${follower.port}?tls=false`
    const context = yield* Layer.build(EventStoreDb.layer(Redacted.make(url), "fail"))
    const db = yield* Effect.provide(Streams, context)
    return { db, elect, follower, freeze: () => proxy.fallSilent(true) }
  })

  it.live("is left for the one that is elected, long before its connection is found dead", () =>
    Effect.gen(function* () {
      const { db, elect, freeze } = yield* cluster
      yield* db.read("1" as MessageId, 0)
      freeze()
      elect(true)
      // Each try takes two seconds, and the client by itself twenty.
      yield* Effect.retry(db.read("1" as MessageId, 0), { times: 20 })
    })
  )

  it.live(
    "makes who asks hear that the store does not answer while nobody is elected, and is used again when it wakes",
    () =>
      Effect.gen(function* () {
        const { db, elect, freeze } = yield* cluster
        yield* db.read("1" as MessageId, 0)
        freeze()
        const tries = vi.spyOn(services.StreamsClient.prototype, "read")
        const failures = yield* Effect.all(
          Array.from({ length: 800 }, (_, n) => Effect.flip(db.read(`${n}` as MessageId, 0))),
          { concurrency: "unbounded" }
        )
        expect(failures.every(({ _tag }) => _tag === "StoreUnavailable")).toBe(true)
        // One limit for all, and not a turn of 80 after another: in its time there are three turns.
        expect(tries.mock.calls.length).toBeLessThan(500)
        tries.mockRestore()
        elect(true)
        yield* Effect.retry(db.read("1" as MessageId, 0), { times: 20 })
      })
  )
})

describe("a server that was not silent", () => {
  const alone = Effect.gen(function* () {
    const server = yield* eventStore()
    const context = yield* Layer.build(EventStoreDb.layer(Redacted.make(server.url), "fail"))
    return { server, db: yield* Effect.provide(Streams, context) }
  })

  it.live("is not taken for silent by a process that was kept from its machine", () =>
    Effect.gen(function* () {
      const { server, db } = yield* alone
      const before = server.calls("read")
      server.inject({ rpc: "read", fault: { slowMs: 300 } })
      const reading = yield* Effect.forkChild(db.read("1" as MessageId, 0))
      while (server.calls("read") === before) yield* Effect.sleep("1 millis")
      const until = performance.now() + 2_500
      while (performance.now() < until);
      // A try may have missed its deadline meanwhile, but there is time for another.
      expect(yield* Fiber.join(reading)).toEqual([])
    })
  )

  for (const others of ["answered", "refused"] as const) {
    it.live(`is given the time it needs for one call while others are ${others}`, () =>
      Effect.gen(function* () {
        const { server, db } = yield* alone
        server.inject({ rpc: "read", fault: { slowMs: 1_000 }, times: 1_000, stream: "message-slow" })
        if (others === "refused")
          server.inject({ rpc: "read", fault: "unavailable", times: 100_000, stream: "message-other" })
        const ask = Effect.andThen(Effect.ignore(db.read("other" as MessageId, 0)), Effect.sleep("20 millis"))
        yield* Effect.forkChild(Effect.forever(ask))
        // A busy machine may miss the deadline of a call. Who takes slowness for silence never gets an answer.
        expect(yield* Effect.retry(db.read("slow" as MessageId, 0), { times: 8 })).toEqual([])
      })
    )
  }
})
