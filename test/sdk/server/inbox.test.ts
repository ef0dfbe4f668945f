/**
 * The inbox and the outbox with every library that users have, on a real server: what they do commits with the user's
 * transaction, or not at all.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { databaseOf } from "../../../sdk/src/database.ts"
import { amqpConsumer, createInbox, NoMessageIdError, once, prune } from "../../../sdk/src/inbox.ts"
import { type DatabaseClient, publish, send } from "../../../sdk/src/outbox.ts"
import { libraries, type Opened } from "./clients.ts"
import { commanded, testDatabase } from "./database.ts"

const database = testDatabase("create table work (note text not null)")

/** Does something with the user's own client, whichever it is. */
const note = (client: unknown, text: string) =>
  databaseOf(client).run("insert into work (note) values ($1::text)", [text])

const notes = async () =>
  (await database().pool.query("select note from work order by note")).rows.map(({ note }) => note as string)

beforeEach(async () => {
  await database().pool.query("delete from work; drop table if exists posthaste_inbox")
})

describe.each(libraries)("with $name", ({ open }) => {
  let opened: Opened
  beforeAll(async () => {
    opened = await open(database().url)
  })
  afterAll(async () => {
    await opened.close()
  })

  describe("the outbox", () => {
    const message = {
      org: "acme",
      channel: "webhook",
      to: "somewhere",
      payloadJson: { "it's": '\\ "quoted" $1 ? é 😀', list: [1, null] }
    }

    it("sends a message with the transaction, and answers its id", async () => {
      const id = await opened.transaction((transaction) => send(transaction, { ...message, idempotencyKey: "one" }))
      expect(id).toMatch(/^[0-9a-f-]{36}$/)
      const { org, ...body } = message
      expect((await commanded(database().pool)).find((one) => one.id === id)).toEqual({
        id,
        kind: "message",
        org,
        body,
        key: "one"
      })
    })

    it("publishes an event with the transaction, and needs no key", async () => {
      const event = { org: "acme", eventType: "order.placed", data: { order: 1 } }
      const id = await opened.transaction((transaction) => publish(transaction, event))
      const { org, ...body } = event
      expect((await commanded(database().pool)).find((one) => one.id === id)).toEqual({
        id,
        kind: "event",
        org,
        body,
        key: null
      })
    })

    it("sends nothing when the transaction is rolled back", async () => {
      const before = (await commanded(database().pool)).length
      const failing = opened.transaction(async (transaction) => {
        await send(transaction, message)
        throw new Error("no")
      })
      await expect(failing).rejects.toThrow("no")
      expect(await commanded(database().pool)).toHaveLength(before)
    })
  })

  describe("the inbox", () => {
    const incoming = { consumer: "billing", messageId: "m-1" }

    it("makes its table, works in a transaction of its own, and answers what the work answers", async () => {
      const answer = await once(opened.root, incoming, async (transaction) => {
        await note(transaction, "done")
        return 42
      })
      expect(answer).toBe(42)
      expect(await notes()).toEqual(["done"])
      expect(await database().count("posthaste_inbox")).toBe(1)
    })

    it("skips a duplicate, and answers undefined", async () => {
      const work = (transaction: unknown) => note(transaction, "done")
      await once(opened.root, incoming, work)
      expect(await once(opened.root, incoming, work)).toBeUndefined()
      expect(await notes()).toEqual(["done"])
    })

    it("handles a message once for each consumer", async () => {
      for (const consumer of ["a", "b"]) await once(opened.root, { ...incoming, consumer }, (tx) => note(tx, consumer))
      expect(await notes()).toEqual(["a", "b"])
    })

    it("forgets the message when the work fails, so that it can come again", async () => {
      const failing = once(opened.root, incoming, async (transaction) => {
        await note(transaction, "undone")
        throw new Error("no")
      })
      await expect(failing).rejects.toThrow("no")
      await once(opened.root, incoming, (transaction) => note(transaction, "done"))
      expect(await notes()).toEqual(["done"])
    })

    it("stays in the transaction that is open", async () => {
      const failing = opened.transaction(async (transaction) => {
        await once(transaction, incoming, (inner) => note(inner, "undone"))
        throw new Error("no")
      })
      await expect(failing).rejects.toThrow("no")
      expect(await notes()).toEqual([])
      expect(await database().count("pg_class", "relname = 'posthaste_inbox'")).toBe(0)
      await opened.transaction((transaction) => once(transaction, incoming, (inner) => note(inner, "done")))
      expect(await notes()).toEqual(["done"])
      expect(await database().count("posthaste_inbox")).toBe(1)
    })

    it("undoes only the work that failed in a transaction that is open, and its mark with it", async () => {
      await opened.transaction(async (transaction) => {
        await note(transaction, "before")
        const failing = once(transaction, incoming, async (inner) => {
          await note(inner, "undone")
          throw new Error("no")
        })
        await expect(failing).rejects.toThrow("no")
        await note(transaction, "after")
      })
      expect(await notes()).toEqual(["after", "before"])
      expect(await once(opened.root, incoming, () => "again")).toBe("again")
    })

    it("does not work twice when a statement of the work meets a missing table", async () => {
      let worked = 0
      const failing = once(opened.root, incoming, async (transaction) => {
        worked++
        await databaseOf(transaction).run("insert into nowhere values (1)")
      })
      await expect(failing).rejects.toThrow()
      expect(worked).toBe(1)
    })
  })
})

describe("many consumers of one message at once", () => {
  it.each(libraries.filter(({ name }) => name !== "pg (client)"))("work on it once, with $name", async ({ open }) => {
    const opened = await open(database().url)
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        once(opened.root, { consumer: "billing", messageId: "m-1" }, async (transaction) => {
          await note(transaction, `by ${n}`)
          return n
        })
      )
    )
    await opened.close()
    expect(answers.filter((answer) => answer !== undefined)).toHaveLength(1)
    expect(await notes()).toHaveLength(1)
  })

  it("wait for the one that works, and take over when it fails", async () => {
    const { pool } = database()
    await createInbox(pool)
    const incoming = { consumer: "billing", messageId: "m-1" }
    let isWorking = () => {}
    let mayFail = () => {}
    const working = new Promise<void>((resolve) => (isWorking = resolve))
    const first = once(pool, incoming, async () => {
      isWorking()
      await new Promise<void>((resolve) => (mayFail = resolve))
      throw new Error("no")
    })
    await working
    const second = once(pool, incoming, () => "second")
    // Until the server says that the second waits for the first, failing would show nothing.
    while (
      (await database().count("pg_stat_activity", "wait_event_type = 'Lock' and datname = current_database()")) === 0
    ) {}
    mayFail()
    await expect(first).rejects.toThrow("no")
    expect(await second).toBe("second")
  })
})

describe("the inbox forgets", () => {
  const old = (days: number, count: number) =>
    database().pool.query(
      `insert into posthaste_inbox select 'billing', 'old-' || n, now() - $1 * interval '1 day' from generate_series(1, $2) as n`,
      [days, count]
    )

  it("ids that are older than it keeps them, however many", async () => {
    const { pool } = database()
    await createInbox(pool)
    await old(31, 2_500)
    await once(pool, { consumer: "billing", messageId: "new" }, () => null)
    expect(await prune(pool)).toBe(2_500)
    expect(await database().count("posthaste_inbox")).toBe(1)
    expect(await prune(pool, { keepDays: 0 })).toBe(1)
  })

  it("them by itself, now and then", async () => {
    const { pool } = database()
    await createInbox(pool)
    await old(31, 10)
    for (let n = 0; n < 100; n++) await once(pool, { consumer: "billing", messageId: `new-${n}` }, () => null)
    expect(await database().count("posthaste_inbox", "message_id like 'old-%'")).toBe(0)
  })

  it("nothing that is younger", async () => {
    const { pool } = database()
    await createInbox(pool)
    await old(6, 1)
    expect(await prune(pool, { keepDays: 7 })).toBe(0)
  })
})

describe("what the library is given", () => {
  it("is refused when it is no client", async () => {
    const client = { connect: () => {} } as unknown as DatabaseClient
    await expect(once(client, { consumer: "a", messageId: "b" }, () => null)).rejects.toThrow(TypeError)
    await expect(send(client, { org: "acme", channel: "webhook", to: "x", payloadJson: null })).rejects.toThrow(
      TypeError
    )
  })

  it("must name consumer, message and org", async () => {
    const { pool } = database()
    await expect(once(pool, { consumer: "", messageId: "b" }, () => null)).rejects.toThrow("consumer")
    await expect(once(pool, { consumer: "a", messageId: "" }, () => null)).rejects.toThrow("messageId")
    await expect(send(pool, { org: "", channel: "webhook", to: "x", payloadJson: null })).rejects.toThrow("org")
  })

  it("may name a table in a schema of the user's", async () => {
    const { pool } = database()
    await pool.query(`create schema if not exists "My ""own"""`)
    const incoming = { consumer: "a", messageId: "b", table: `My "own".Inbox` }
    expect(await once(pool, incoming, () => 1)).toBe(1)
    expect(await once(pool, incoming, () => 1)).toBeUndefined()
  })
})

describe("the consumer of a queue", () => {
  it("handles a message of rabbitmq-client and one of amqplib once", async () => {
    const handled: Array<unknown> = []
    const handle = amqpConsumer({ client: database().pool, consumer: "shipping" }, (_, message) =>
      handled.push(message)
    )
    const messages = [
      { messageId: "a", body: 1 },
      { properties: { messageId: "b" }, content: Buffer.from("2") }
    ]
    for (const message of [...messages, ...messages]) await handle(message)
    expect(handled).toEqual(messages)
  })

  it("refuses a message that could not be told from another", async () => {
    const handle = amqpConsumer({ client: database().pool, consumer: "shipping" }, () => null)
    await expect(handle({ body: 1 })).rejects.toThrow(NoMessageIdError)
    await expect(handle({ properties: {} })).rejects.toThrow(NoMessageIdError)
  })
})
