/**
 * Sagas on a real server. The order of the tests is that of the flow: the saga and its outbox in one transaction, steps that
 * wait, compensation, and everything that can be cut off in the middle.
 */
import { spawn } from "node:child_process"
import { once as happened } from "node:events"
import { join } from "node:path"
import type pg from "pg"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { databaseOf } from "../../../sdk/src/database.ts"
import { once } from "../../../sdk/src/inbox.ts"
import { createSagas, SagaSetupError, saga } from "../../../sdk/src/saga.ts"
import { compileCache } from "../../servers/posthaste.ts"
import { libraries, type Opened } from "./clients.ts"
import { commanded, testDatabase } from "./database.ts"
import { dyingAt, executed, fiveSteps, longRunning, workTable } from "./fiveSteps.ts"

const database = testDatabase(workTable)
const pool = () => database().pool

const effects = async (order: string) =>
  (await pool().query("select note from work where work.order_id = $1 order by at", [order])).rows.map(
    ({ note }) => note as string
  )

const published = async (sagaId: string) =>
  (await commanded(pool(), sagaId)).map(({ body }) => body["eventType"] ?? body["channel"]).toSorted()

/** A saga that failed and is to be tried later, is to be tried now. */
const makeDue = (id: string) =>
  pool().query("update posthaste_saga set due_at = now() where id = $1 and due_at is not null", [id])

const five = ["one", "two", "three", "four", "five"]
/** What goes out with them: events, and a message for a webhook. */
const sent = ["five.done", "one.done", "two.done", "webhook"]

beforeEach(async () => {
  await pool().query("drop table if exists posthaste_saga, posthaste_saga_event, posthaste_inbox")
})

describe("the saga outbox: execute, in one transaction, with an event for each step", () => {
  it("1. begins a transaction, 2. runs each step's action, 3. inserts its event, 4. commits, 5. answers the result", async () => {
    const result = await fiveSteps.execute(pool(), { order: "o-1" })
    expect(result.results).toEqual({
      one: "one done",
      two: "two done",
      three: "three done",
      four: "four done",
      five: "five done"
    })
    expect(Object.keys(result.events)).toEqual(["one", "two", "four", "five"])
    expect(await effects("o-1")).toEqual(five)
    expect(await published(result.id)).toEqual(sent)
    const ids = (await commanded(pool())).map(({ id }) => id)
    for (const id of Object.values(result.events)) expect(ids).toContain(id)
  })

  it("sends a message for a step that names a channel, and publishes an event for any other", async () => {
    const { events } = await fiveSteps.execute(pool(), { order: "o-2" })
    const kinds = Object.fromEntries((await commanded(pool())).map(({ id, kind }) => [id, kind]))
    expect(kinds[events["four"]!]).toBe("message")
    expect(kinds[events["one"]!]).toBe("event")
  })

  it("leaves nothing behind when a step fails: neither a row nor an event", async () => {
    const before = (await commanded(pool())).length
    const failing = fiveSteps.step("six", {
      action: () => {
        throw new Error("out of stock")
      }
    })
    await expect(failing.execute(pool(), { order: "o-3" })).rejects.toThrow("out of stock")
    expect(await effects("o-3")).toEqual([])
    expect(await commanded(pool())).toHaveLength(before)
  })

  it("does not call compensate: the transaction undid it", async () => {
    const called: Array<string> = []
    const failing = saga("compensates")
      .step("one", { action: () => 1, compensate: () => called.push("one") })
      .step("two", {
        action: () => {
          throw new Error("no")
        }
      })
    await expect(failing.execute(pool(), null)).rejects.toThrow("no")
    expect(called).toEqual([])
  })

  it("refuses a step that would have to wait, a step twice, and a saga without steps", async () => {
    await expect(longRunning().execute(pool(), { order: "o" })).rejects.toThrow(SagaSetupError)
    expect(() =>
      saga("twice")
        .step("a", { action: () => 1 })
        .step("a", { action: () => 2 })
    ).toThrow(SagaSetupError)
    await expect(saga("none").start(pool(), null)).rejects.toThrow(SagaSetupError)
  })

  describe.each(libraries)("with $name", ({ open }) => {
    let opened: Opened
    beforeAll(async () => {
      opened = await open(database().url)
    })
    afterAll(() => opened.close())

    it("commits all or nothing", async () => {
      await fiveSteps.execute(opened.root, { order: "whole" })
      expect(await effects("whole")).toEqual(five)
      const failing = fiveSteps.step("six", { action: () => Promise.reject(new Error("no")) })
      await expect(failing.execute(opened.root, { order: "none" })).rejects.toThrow("no")
      expect(await effects("none")).toEqual([])
      await pool().query("delete from work")
    })

    it("belongs to the transaction that is open", async () => {
      const failing = opened.transaction(async (transaction) => {
        await fiveSteps.execute(transaction, { order: "inner" })
        throw new Error("no")
      })
      await expect(failing).rejects.toThrow("no")
      expect(await effects("inner")).toEqual([])
    })

    it("runs long, waits, compensates, and retries what fails", async () => {
      const order = { order: "long" }
      const started = await longRunning().start(opened.root, order)
      expect(started).toMatchObject({ status: "WAITING", done: ["one", "two"], waitsFor: ["paid", "refused"] })
      const paid = { sagaId: started.id, name: "paid", messageId: "m-1", data: { amount: 5 } }
      const ended = await longRunning().deliver(opened.root, paid)
      expect(ended).toMatchObject({ status: "COMPLETED", done: five, results: { three: "three by paid 5" } })
      expect(await effects("long")).toEqual(five)

      const refused = await longRunning().start(opened.root, { order: "refused" })
      const undone = await longRunning().deliver(opened.root, { ...paid, sagaId: refused.id, name: "refused" })
      expect(undone).toMatchObject({ status: "COMPENSATED", done: [], lastError: "three: the payment was refused" })
      expect(await effects("refused")).toEqual(["one", "two", "not two", "not one"])
      await pool().query("delete from work")
    })
  })
})

describe("a long-running saga", () => {
  const paid = (sagaId: string, messageId = "m-1") => ({ sagaId, name: "paid", messageId, data: { amount: 5 } })
  const counted = async (id: string) => ({ effects: await effects(id), events: (await published(id)).length })
  const whole = { effects: five, events: 4 }

  it("starts once under one id", async () => {
    const [first, second] = [
      await longRunning().start(pool(), { order: "s-1" }, { id: "s-1" }),
      await longRunning().start(pool(), { order: "other" }, { id: "s-1" })
    ]
    expect(second).toEqual(first)
    expect(await effects("s-1")).toEqual(["one", "two"])
    expect(await effects("other")).toEqual([])
  })

  it("takes an event once, however often it comes", async () => {
    await longRunning().start(pool(), { order: "s-2" }, { id: "s-2" })
    for (let n = 0; n < 3; n++) await longRunning().deliver(pool(), paid("s-2"))
    expect(await counted("s-2")).toEqual(whole)
  })

  it("takes an event that came before the step that waits for it", async () => {
    await longRunning().deliver(pool(), paid("s-3"))
    const state = await longRunning().start(pool(), { order: "s-3" }, { id: "s-3" })
    expect(state.status).toBe("COMPLETED")
    expect(await counted("s-3")).toEqual(whole)
  })

  it("gives each step that waits for the same name an event of its own, in the order they came", async () => {
    const twice = saga<null>("twice")
      .step("first", { waitsFor: "tick", action: (_, __, { event }) => event!.data })
      .step("second", { waitsFor: "tick", action: (_, __, { event }) => event!.data })
    const { id } = await twice.start(pool(), null)
    const tick = (n: number) => ({ sagaId: id, name: "tick", messageId: `t-${n}`, data: n })
    expect(await twice.deliver(pool(), tick(1))).toMatchObject({ status: "WAITING", done: ["first"] })
    expect(await twice.deliver(pool(), tick(1))).toMatchObject({ status: "WAITING", done: ["first"] })
    expect(await twice.deliver(pool(), tick(2))).toMatchObject({
      status: "COMPLETED",
      results: { first: 1, second: 2 }
    })
  })

  it("takes an event within the transaction of the inbox that brought it", async () => {
    await longRunning().start(pool(), { order: "s-4" }, { id: "s-4" })
    const bring = (fail: boolean) =>
      once(pool(), { consumer: "orders", messageId: "m-1" }, async (transaction) => {
        const state = await longRunning().deliver(transaction, paid("s-4"))
        if (fail) throw new Error("no")
        return state?.status
      })
    await expect(bring(true)).rejects.toThrow("no")
    expect(await effects("s-4")).toEqual(["one", "two"])
    expect(await bring(false)).toBe("COMPLETED")
    expect(await bring(false)).toBeUndefined()
    expect(await counted("s-4")).toEqual(whole)
  })

  it("gives up when it waits in vain", async () => {
    const impatient = saga<{ order: string }, pg.PoolClient>("impatient")
      .step("one", { action: () => 1, compensate: (tx, { order }) => executed(tx, order, "not one") })
      .step("two", { waitsFor: "never", timeoutMs: 3_600_000, action: () => 2 })
    const { id } = await impatient.start(pool(), { order: "s-5" })
    expect(await impatient.resume(pool())).toBe(0)
    await makeDue(id)
    expect(await impatient.resume(pool())).toBe(2)
    expect(await impatient.get(pool(), id)).toMatchObject({
      status: "COMPENSATED",
      lastError: "The step two waited in vain for never."
    })
    expect(await effects("s-5")).toEqual(["not one"])
  })

  it("tries a step again that failed, and leaves none of the failed tries behind", async () => {
    let fails = 2
    const shaky = saga<{ order: string }, pg.PoolClient>("shaky").step("one", {
      action: async (tx, { order }) => {
        await executed(tx, order, "one")
        if (fails-- > 0) throw new Error("not yet")
      }
    })
    const started = await shaky.start(pool(), { order: "s-6" })
    expect(started).toMatchObject({ status: "RUNNING", attempts: 1, lastError: "one: not yet" })
    expect(await shaky.resume(pool())).toBe(0)
    for (let n = 0; n < 2; n++) {
      await makeDue(started.id)
      expect(await shaky.resume(pool())).toBe(1)
    }
    expect(await shaky.get(pool(), started.id)).toMatchObject({ status: "COMPLETED", attempts: 0 })
    expect(await effects("s-6")).toEqual(["one"])
  })

  it("gives up a step that fails too often, and never gives up a compensation", async () => {
    let fails = 3
    const failing = saga<{ order: string }, pg.PoolClient>("failing", { attemptsMax: 2 })
      .step("one", {
        action: () => 1,
        compensate: async (tx, { order }) => {
          await executed(tx, order, "not one")
          if (fails-- > 0) throw new Error("not yet")
        }
      })
      .step("two", { action: () => Promise.reject(new Error("no")) })
    const { id } = await failing.start(pool(), { order: "s-7" })
    for (let n = 0; n < 5; n++) {
      await makeDue(id)
      await failing.resume(pool())
    }
    expect(await failing.get(pool(), id)).toMatchObject({ status: "COMPENSATED" })
    expect(await effects("s-7")).toEqual(["not one"])
  })

  it("is cancelled by hand, once", async () => {
    await longRunning().start(pool(), { order: "s-8" }, { id: "s-8" })
    const state = await longRunning().cancel(pool(), "s-8", "the customer called")
    expect(state).toMatchObject({ status: "COMPENSATED", lastError: "the customer called" })
    await longRunning().cancel(pool(), "s-8")
    await longRunning().deliver(pool(), paid("s-8"))
    expect(await effects("s-8")).toEqual(["one", "two", "not two", "not one"])
    expect(await longRunning().cancel(pool(), "nobody")).toBeUndefined()
  })

  it("does not go on when its definition has changed under it, and says so", async () => {
    const before = saga<null>("changed")
      .step("a", { action: () => 1 })
      .step("b", { waitsFor: "go", action: () => 2 })
    const after = saga<null>("changed")
      .step("z", { action: () => 1 })
      .step("b", { waitsFor: "go", action: () => 2 })
    const { id } = await before.start(pool(), null)
    const state = await after.deliver(pool(), { sagaId: id, name: "go", messageId: "m", data: null })
    expect(state).toMatchObject({ done: ["a"], lastError: expect.stringContaining("definition") })
    expect(await after.resume(pool())).toBe(0)
    await makeDue(id)
    await before.resume(pool())
    expect(await before.get(pool(), id)).toMatchObject({ status: "COMPLETED" })
  })

  it("is done once by many that resume it at once", async () => {
    await createSagas(pool())
    const orders = Array.from({ length: 20 }, (_, n) => `many-${n}`)
    // As a crash right behind the start leaves them.
    for (const id of orders) {
      await pool().query(
        "insert into posthaste_saga (name, id, status, context, due_at) values ('order', $1, 'RUNNING', $2, now())",
        [id, { order: id }]
      )
    }
    await Promise.all([
      ...Array.from({ length: 4 }, () => longRunning().resume(pool())),
      ...orders.map((id) => longRunning().deliver(pool(), paid(id, `m-${id}`))),
      ...orders.map((id) => longRunning().deliver(pool(), paid(id, `m-${id}`)))
    ])
    await longRunning().resume(pool())
    for (const id of orders) expect(await counted(id)).toEqual(whole)
  })

  it("forgets what ended long ago, and nothing else", async () => {
    await longRunning().start(pool(), { order: "s-9" }, { id: "s-9" })
    await longRunning().start(pool(), { order: "s-10" }, { id: "s-10" })
    await longRunning().deliver(pool(), paid("s-9"))
    await longRunning().deliver(pool(), paid("nobody"))
    await pool().query("update posthaste_saga set updated_at = now() - interval '8 days'")
    await pool().query("update posthaste_saga_event set received_at = now() - interval '8 days'")
    expect(await longRunning().prune(pool(), { keepDays: 9 })).toBe(0)
    expect(await longRunning().prune(pool(), { keepDays: 7 })).toBe(1)
    expect(await longRunning().get(pool(), "s-9")).toBeUndefined()
    expect(await longRunning().get(pool(), "s-10")).toMatchObject({ status: "WAITING" })
    expect(await database().count("posthaste_saga_event")).toBe(0)
  })

  it("is carried on by run until the signal ends it", async () => {
    await longRunning().start(pool(), { order: "s-11" }, { id: "s-11" })
    await pool().query(
      "insert into posthaste_saga_event (saga, saga_id, message_id, name, data) values ('order', 's-11', 'm', 'paid', '{\"amount\": 5}')"
    )
    const controller = new AbortController()
    const running = longRunning().run(pool(), { signal: controller.signal, everyMs: 10 })
    while ((await longRunning().get(pool(), "s-11"))?.status !== "COMPLETED")
      await new Promise((next) => setTimeout(next, 10))
    controller.abort()
    await running
    expect(await counted("s-11")).toEqual(whole)
  })
})

describe("a process that dies", () => {
  /** What every death must leave: all or nothing. */
  const allOrNothing = async (order: string) => {
    const done = await effects(order)
    expect(done).toEqual(done.length === 0 ? [] : five)
    expect(await published(order)).toEqual(done.length === 0 ? [] : sent)
    return done.length === 5
  }

  /** Everything happened once, and the payment's answer came only once, too. */
  const finished = async (order: string) => {
    await makeDue(order)
    await longRunning().resume(pool())
    const { status } = (await longRunning().get(pool(), order))!
    return { status, effects: await effects(order), events: await published(order) }
  }

  /** Runs `work` over clients that die at their first, second, … statement, until one lives to the end. Answers how many died. */
  const atEveryStatement = async (
    work: (client: pg.PoolClient, order: string) => Promise<void>,
    when: "before" | "after",
    kind: string
  ) => {
    for (let n = 1; ; n++) {
      const client = await pool().connect()
      const order = `${kind}-${when}-${n}`
      let died = false
      await work(dyingAt(client, n, when), order).catch((error: Error) => {
        expect(error.message).toMatch(/^died/)
        died = true
      })
      // The connection goes with the process.
      client.release(true)
      if (!died) return n - 1
    }
  }

  describe.each(["before", "after"] as const)("%s a statement, whichever it is", (when) => {
    it("leaves an executed saga whole or not begun", async () => {
      const orders: Array<string> = []
      const deaths = await atEveryStatement(
        async (client, order) => {
          orders.push(order)
          await fiveSteps.execute(client, { order }, { id: order })
        },
        when,
        "execute"
      )
      expect(deaths).toBeGreaterThan(10)
      const whole = await Promise.all(orders.map(allOrNothing))
      // Whole: the last, which lived, and, behind its commit, the one before.
      expect(whole.filter((each) => each)).toHaveLength(when === "before" ? 1 : 2)
    })

    it("lets a long-running saga be carried on, with each effect once", async () => {
      await createSagas(pool())
      const orders: Array<string> = []
      const deaths = await atEveryStatement(
        async (client, order) => {
          orders.push(order)
          await longRunning().start(client, { order }, { id: order })
          await longRunning().deliver(client, { sagaId: order, name: "paid", messageId: "m-1", data: { amount: 5 } })
        },
        when,
        "long"
      )
      expect(deaths).toBeGreaterThan(30)
      for (const order of orders) {
        // Who asked for it does so again, and so does the one who brought the event.
        await longRunning().start(pool(), { order }, { id: order })
        await longRunning().deliver(pool(), { sagaId: order, name: "paid", messageId: "m-1", data: { amount: 5 } })
        expect(await finished(order)).toEqual({ status: "COMPLETED", effects: five, events: sent })
      }
    })

    it("lets a compensation be carried on, with each step undone once", async () => {
      await createSagas(pool())
      const orders: Array<string> = []
      await atEveryStatement(
        async (client, order) => {
          orders.push(order)
          await longRunning().start(pool(), { order }, { id: order })
          await longRunning().deliver(client, { sagaId: order, name: "refused", messageId: "m-1", data: null })
        },
        when,
        "undo"
      )
      for (const order of orders) {
        await longRunning().deliver(pool(), { sagaId: order, name: "refused", messageId: "m-1", data: null })
        expect(await finished(order)).toMatchObject({
          status: "COMPENSATED",
          effects: ["one", "two", "not two", "not one"]
        })
      }
    })
  })

  describe("by SIGKILL", () => {
    const child = join(import.meta.dirname, "dyingSaga.ts")

    /** A process that is killed while it awaits its nth statement. True when it lived to the end. */
    const runs = async (kind: string, order: string, at: number): Promise<boolean> => {
      const env = { PATH: process.env["PATH"], ...compileCache }
      const stdio = ["ignore", "ignore", "inherit"] as const
      const dying = spawn(process.execPath, [child, database().url, kind, order, String(at)], {
        env,
        stdio: [...stdio]
      })
      const [code, signal] = await happened(dying, "exit")
      expect(signal === "SIGKILL" || code === 0).toBe(true)
      return code === 0
    }

    it.each([
      ["execute", 10],
      ["long", 30]
    ] as const)(
      "at each await of %s is all or nothing, and each effect once",
      { timeout: 300_000 },
      async (kind, awaits) => {
        await createSagas(pool())
        const orders: Array<string> = []
        let lived = false
        // Four at a time: most of what a process takes is its start.
        for (let at = 1; !lived; at += 4) {
          const group = [at, at + 1, at + 2, at + 3].map((n) => ({ n, order: `kill-${kind}-${n}` }))
          orders.push(...group.map(({ order }) => order))
          lived = (await Promise.all(group.map(({ n, order }) => runs(kind, order, n)))).some((each) => each)
        }
        expect(orders.length).toBeGreaterThan(awaits)
        // What the server still does for a process that is gone comes to its end before we look.
        while (
          (await database().count("pg_stat_activity", "application_name = 'dying' and datname = current_database()")) >
          0
        ) {}
        for (const order of orders) {
          if (kind === "execute") {
            await allOrNothing(order)
          } else {
            await longRunning().start(pool(), { order }, { id: order })
            await longRunning().deliver(pool(), { sagaId: order, name: "paid", messageId: "m-1", data: { amount: 5 } })
            expect(await finished(order)).toEqual({ status: "COMPLETED", effects: five, events: sent })
          }
        }
      }
    )
  })
})

describe("the inbox of a consumer", () => {
  it("1. finds no row, 2. begins, 3. inserts the id, 4. runs the logic, 5. commits; then 6. finds the row and skips", async () => {
    const incoming = { consumer: "shipping", messageId: "ABC" }
    const said: Array<string> = []
    const client = await pool().connect()
    const query = client.query.bind(client) as (text: string, values?: Array<unknown>) => Promise<unknown>
    const listening = {
      getTransactionStatus: () => client.getTransactionStatus(),
      query: (text: string, values?: Array<unknown>) => {
        said.push(text.trim().slice(0, 6))
        return query(text, values)
      }
    }
    await once(pool(), { ...incoming, messageId: "makes the table" }, () => null)
    await once(listening, incoming, (transaction) => databaseOf(transaction).run("select 'the logic'"))
    await once(listening, incoming, () => said.push("never"))
    client.release()
    expect(said).toEqual(["begin", "insert", "select", "commit", "begin", "insert", "commit"])
  })
})
