/**
 * A backup of each kind, made and restored by the commands of docs/backup.md on real servers, one of which goes on after its
 * backup: on each restored database everything new is delivered, listed, alerted and fed, and messages whose fate nobody
 * knows are named.
 */
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { it } from "@effect/vitest"
import { Effect, Scope } from "effect"
import pg from "pg"
import { afterAll, beforeAll, describe, expect } from "vitest"
import { installed } from "../servers/installed.ts"
import { ownDirectory } from "../servers/leftovers.ts"
import { type Home, type OwnPostgres, postgresHome, programsIn } from "../servers/ownPostgres.ts"
import { api, operatorKey, startProduct } from "../servers/product.ts"
import { type Received, receiver } from "../servers/receiver.ts"
import { PATIENCE_MS, until } from "../servers/until.ts"

const ORG = "acme"
/** More than a start uses: a server that did not count them on counts below. */
const TRANSACTIONS = 3_000

/** The shell blocks below a heading of the page, in order. */
const page = readFileSync(join(import.meta.dirname, "../../docs/backup.md"), "utf8")
const commandsOf = (heading: string): ReadonlyArray<string> => {
  const [, section] = page.split(`\n## ${heading}\n`)
  return [...section!.split("\n## ")[0]!.matchAll(/^```sh\n(.*?)^```/gms)].map(([, command]) => command!)
}
const [dump, restoreDump] = commandsOf("A dump")
const [baseBackup, restoreBase] = commandsOf("A base backup")
const [restoreToMoment] = commandsOf("Back to a moment")

const programsHere = Effect.promise(async () => dirname(await installed("pg_basebackup")))

interface Stage {
  readonly home: Home
  readonly far: ReadonlyArray<Received>
  readonly alerts: ReadonlyArray<Received>
  readonly endpoint: string
  readonly failing: string
  /** Waited when the backups were made. */
  readonly waiting: ReadonlyArray<string>
  /** Was accepted after the backups and waited at the moment. */
  readonly later: ReadonlyArray<string>
  readonly delivered: string
  /** What a subscriber of the feed saw last. */
  readonly lastEventId: string
  /** Runs a command of the page. */
  readonly sh: (command: string, variables?: Readonly<Record<string, string>>) => Promise<void>
  readonly path: (name: string) => string
}

const once = async <A extends object>(url: string, sql: string): Promise<A> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<A>(sql)
  await client.end()
  return rows[0]!
}

const countOn = (url: string) =>
  once(url, `do $$ begin for n in 1..${TRANSACTIONS} loop perform pg_current_xact_id(); commit; end loop; end $$`)

const sendTo = async (url: string, to: string, count: number): Promise<ReadonlyArray<string>> => {
  const messages = Array.from({ length: count }, (_, n) => ({ channel: "webhook", to, payloadJson: n }))
  const { body } = await api(url, ORG)<{ items: ReadonlyArray<{ message: { id: string } }> }>(
    "POST",
    "/outbound/messages/batch",
    { messages }
  )
  return body.items.map(({ message }) => message.id)
}

const deliveredAt = async (url: string): Promise<number> =>
  (await api(url, ORG)<{ byStatus: Record<string, number> }>("GET", "/outbound/stats")).body.byStatus["DELIVERED"] ?? 0

/** A subscriber of the feed, from behind an event on, or from now on. */
const subscribe = async (url: string, lastEventId: string | null) => {
  const ending = new AbortController()
  const response = await fetch(`${url}/api/v1/feed`, {
    headers: {
      authorization: `Bearer ${operatorKey}`,
      "x-org-id": ORG,
      ...(lastEventId === null ? {} : { "last-event-id": lastEventId })
    },
    signal: ending.signal
  })
  let text = ""
  const complete = () => text.slice(0, text.lastIndexOf("\n\n") + 1)
  const reading = (async () => {
    for await (const chunk of response.body!) text += Buffer.from(chunk).toString("utf8")
  })().catch(() => {})
  await until("the beginning of the feed", () => text.includes("\n\n"))
  return {
    hasTold: (message: string) =>
      complete()
        .split("\n\n")
        .some((event) => event.includes(`message-${message}`) && event.includes("MessageDelivered")),
    lastId: () => [...complete().matchAll(/^id: (.+)$/gm)].at(-1)![1]!,
    stop: async () => {
      ending.abort()
      await reading
    }
  }
}

/** A Posthaste works on a server, which is backed up meanwhile and goes on. */
const prepare = Effect.gen(function* () {
  const bin = yield* programsHere
  const directory = yield* ownDirectory
  const far = yield* receiver(() => ({ status: 200 }))
  const failing = yield* receiver(() => ({ status: 400 }))
  const alerts = yield* receiver(() => ({ status: 200 }))
  return yield* Effect.promise(async (): Promise<Stage> => {
    const home = await postgresHome(directory, programsIn(bin))
    const restored = home.directory("restored")
    const path = (name: string) => join(restored, name)
    const archive = home.directory("archive")
    const backups = home.directory("backups")
    const server = await home.server(await home.initialize("original"), {
      fsync: "off",
      archive_mode: "on",
      archive_command: `test ! -f ${archive}/%f && cp %p ${archive}/%f`
    })
    await server.start()
    const places = { PATH: `${bin}:${process.env["PATH"]}`, BACKUPS: backups, ARCHIVE: archive }
    const sh = (command: string, variables: Readonly<Record<string, string>> = {}) =>
      home.shell(command, { ...places, ...variables })
    await countOn(server.url)

    const running = await startProduct(server.url, {})
    const url = running.url!
    const call = api(url, ORG)
    const made = async (of: string, body: object) => (await call<{ id: string }>("POST", of, body)).body.id
    const endpoint = await made("/webhook-endpoints", { url: far.url })
    const failingEndpoint = await made("/webhook-endpoints", { url: failing.url })
    await made("/alert-targets", { type: "webhook", url: alerts.url, events: ["deadLetter"] })
    const subscriber = await subscribe(url, null)
    const delivered = await sendTo(url, endpoint, 10)
    await until("ten deliveries in the counts", async () => (await deliveredAt(url)) === 10)
    await call("POST", `/webhook-endpoints/${endpoint}/pause`)
    const waiting = await sendTo(url, endpoint, 5)

    await sh(dump!, { DATABASE_URL: server.url })
    await sh(baseBackup!, { DATABASE_URL: server.url })

    const later = await sendTo(url, endpoint, 3)
    const { moment } = await once<{ moment: string }>(server.url, "select clock_timestamp()::text as moment")
    await call("POST", `/webhook-endpoints/${endpoint}/resume`)
    await countOn(server.url)
    const lost = await sendTo(url, endpoint, 4)
    await until("everything delivered", async () => (await deliveredAt(url)) === 22)
    await until("the last one in the feed", () => subscriber.hasTold(lost[3]!))
    const lastEventId = subscriber.lastId()
    await subscriber.stop()
    await running.stop()
    // Its last log is archived on the way.
    await server.stop("fast")
    return {
      ...{ home, path, endpoint, failing: failingEndpoint, waiting, later, lastEventId },
      ...{ far: far.received, alerts: alerts.received, delivered: delivered[0]! },
      sh: (command, variables) => sh(command, { MOMENT: moment, ...variables })
    }
  })
})

const scope = Scope.makeUnsafe()
let stage: Stage
beforeAll(async () => {
  stage = await Effect.runPromise(Scope.provide(prepare, scope))
}, PATIENCE_MS * 2)
afterAll(() => Effect.runPromise(Scope.close(scope, Effect.runSync(Effect.exit(Effect.void)))))

const hasRecovered = ({ url }: OwnPostgres) =>
  until("the end of the recovery", async () => {
    const { is } = await once<{ is: boolean }>(url, "select pg_is_in_recovery() as is")
    return !is
  })

const goesOn = async (server: OwnPostgres, url: string, why: string, saved: ReadonlyArray<string>) => {
  const { far, alerts, delivered, endpoint, failing, waiting, later } = stage
  const running = await startProduct(url, {})
  try {
    const call = api(running.url!, ORG)
    expect(running.printed()).toContain(`the database was restored, moved or promoted: ${why}`)
    expect(running.printed()).toContain(`waited or were under way then: ${saved.length}.`)

    const restoredOf = async (id: string) =>
      (
        await call<{ restored: { savedAt: string; says: string } | null }>(
          "GET",
          `/outbound/messages/${id}/explanation`
        )
      ).body.restored
    expect((await restoredOf(waiting[0]!))!.says).toContain("it may have been sent")
    expect(await restoredOf(delivered)).toBeNull()
    const isKnown = async (id: string) => (await call("GET", `/outbound/messages/${id}`)).status === 200
    expect(await isKnown(later[0]!)).toBe(saved.includes(later[0]!))

    // In the backup the endpoint is paused.
    const before = far.length
    await call("POST", `/webhook-endpoints/${endpoint}/resume`)
    const [fresh] = await sendTo(running.url!, endpoint, 1)
    await until("the messages that waited, and a new one", () => far.length === before + saved.length + 1)
    const again = far.slice(before).map(({ id }) => id)
    expect(again.toSorted()).toEqual([...saved, fresh!].toSorted())
    await until("the new one in the counts", async () => (await deliveredAt(running.url!)) === 10 + saved.length + 1)
    const subscriber = await subscribe(running.url!, stage.lastEventId)
    await until("the new one in the feed", () => subscriber.hasTold(fresh!))
    await subscriber.stop()
    const [refused] = await sendTo(running.url!, failing, 1)
    await until("an alert", () => alerts.some(({ body }) => body.includes(refused!)))
    // Also once it was sent.
    expect(await restoredOf(waiting[0]!)).not.toBeNull()
  } finally {
    await running.stop()
    await server.stop("immediate")
  }
}

describe("a database that is restored", () => {
  it.live("from a dump, into a server that counts transactions from the beginning", () =>
    Effect.promise(async () => {
      const { home, sh, waiting } = stage
      const server = await home.server(await home.initialize("dumped"), { fsync: "off" })
      await server.start()
      await sh(restoreDump!, { NEW_DATABASE_URL: server.url })
      await goesOn(server, server.url, "it is on another server than before", waiting)
    })
  )

  it.live("from a base backup", () =>
    Effect.promise(async () => {
      const { home, sh, waiting, path } = stage
      await sh(restoreBase!, { NEW_DATA: path("based") })
      const server = await home.server(path("based"), { fsync: "off", archive_mode: "off" })
      await server.start()
      await hasRecovered(server)
      await goesOn(server, server.url, "its server was recovered or promoted", waiting)
    })
  )

  it.live("from a base backup whose server goes on as if it were the old one", () =>
    Effect.promise(async () => {
      const { home, sh, waiting, path } = stage
      await sh('cp -a "$BACKUPS/base" "$NEW_DATA"', { NEW_DATA: path("taken") })
      const server = await home.server(path("taken"), { fsync: "off", archive_mode: "off" })
      await server.start()
      await goesOn(server, server.url, "its server was started on a base backup", waiting)
    })
  )

  it.live("to a moment", () =>
    Effect.promise(async () => {
      const { home, sh, waiting, later, path } = stage
      await sh(restoreToMoment!, { NEW_DATA: path("recovered") })
      const server = await home.server(path("recovered"), { fsync: "off", archive_mode: "off" })
      await server.start()
      await hasRecovered(server)
      await goesOn(server, server.url, "its server was recovered or promoted", [...waiting, ...later])
    })
  )
})
