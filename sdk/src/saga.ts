/**
 * `posthaste/saga`: several steps that all happen, or none of them.
 *
 * `execute` is the short form: the actions and the events of all steps in one transaction. It needs no table, and no
 * `compensate`: what fails is rolled back.
 *
 * `start` is the long-running form, for steps that wait for events. Each step is a transaction that holds its action, its event
 * and the note that it was done, so a crash leaves it done or not begun. When a step gives up (it throws `AbortSaga`, fails too
 * often or waits in vain), the steps that were done are compensated, the last first. Effects outside of the database belong in
 * an event: Posthaste delivers it if and only if its step was done.
 *
 * The state is in two tables of the user's database, which are made when they are missing. `resume` goes on with everything
 * that a crash, a failed step or an event has left due; any number of processes may call it at once.
 */
import { sleep } from "./client.ts"
import {
  atomicallyWith,
  createTables,
  type Database,
  type DatabaseClient,
  databaseOf,
  quoted,
  type Row
} from "./database.ts"
import { type OutboxEvent, type OutboxMessage, publish, send } from "./outbox.ts"
import { webCrypto } from "./webCrypto.ts"

export type { DatabaseClient } from "./database.ts"

/** Thrown by an action to give up: what was done is compensated, and the action is not tried again. */
export class AbortSaga extends Error {
  override readonly name = "AbortSaga"
}

/** The saga is not defined as it is used. */
export class SagaSetupError extends Error {
  override readonly name = "SagaSetupError"
}

/** An event or a message that goes out with a step. The saga's org and the saga's id as correlationId are added if left out. */
export type StepEvent = (Omit<OutboxEvent, "org"> | Omit<OutboxMessage, "org">) & { readonly org?: string | undefined }

export interface ArrivedEvent {
  readonly name: string
  readonly messageId: string
  readonly data: unknown
}

export interface StepInfo<Results> {
  readonly sagaId: string
  /** What the actions of the steps before answered. */
  readonly results: Results
  /** What the step waited for; undefined for a step that waits for nothing. */
  readonly event: ArrivedEvent | undefined
}

export interface Step<Context, Transaction, Results, Result> {
  /** What the step does with the transaction. What it answers is JSON. */
  readonly action: (transaction: Transaction, context: Context, step: StepInfo<Results>) => Promise<Result> | Result
  /** What goes out when the step was done. */
  readonly event?: StepEvent | ((context: Context, result: Result, sagaId: string) => StepEvent) | undefined
  /** Undoes the step when a later one gives up. Tried until it succeeds. */
  readonly compensate?:
    | ((transaction: Transaction, context: Context, result: Result, sagaId: string) => Promise<unknown> | unknown)
    | undefined
  /** The step begins when one of these events has come; `deliver` brings them. */
  readonly waitsFor?: string | ReadonlyArray<string> | undefined
  /** How long the step may wait; without it, for ever. Then the saga gives up. */
  readonly timeoutMs?: number | undefined
}

export interface SagaOptions {
  /** The org of the events that name none. */
  readonly org?: string | undefined
  /** The schema of Posthaste; posthaste by default. */
  readonly schema?: string | undefined
  /** The table of the sagas; posthaste_saga by default. Their events are in the same name with _event. */
  readonly table?: string | undefined
  /** How often an action may fail before the saga gives up; 10 by default. */
  readonly attemptsMax?: number | undefined
}

export type SagaStatus = "RUNNING" | "WAITING" | "COMPENSATING" | "COMPLETED" | "COMPENSATED"

export interface SagaState<Context = unknown, Results = Record<string, unknown>> {
  readonly id: string
  readonly status: SagaStatus
  readonly context: Context
  /** What the actions answered, also those that were compensated. */
  readonly results: Partial<Results>
  /** The steps that are done and not compensated. */
  readonly done: ReadonlyArray<string>
  readonly waitsFor: ReadonlyArray<string>
  /** How often the present step, or its compensation, has failed. */
  readonly attempts: number
  readonly lastError: string | null
}

export interface SagaResult<Results> {
  readonly id: string
  readonly results: Results
  /** The ids that Posthaste gave the events, by step. */
  readonly events: Readonly<Record<string, string>>
}

export interface RunOptions {
  readonly signal?: AbortSignal | undefined
  /** How often to look; a second by default. */
  readonly everyMs?: number | undefined
  /** Told what kept a look from being done; the next one is made all the same. */
  readonly onError?: ((error: unknown) => void) | undefined
}

// biome-ignore lint/suspicious/noExplicitAny: the transaction of the user's library, which only the user can name
type AnyTransaction = any
type AnyStep = Step<unknown, AnyTransaction, unknown, unknown>

export interface Saga<Context, Transaction = AnyTransaction, Results = unknown> {
  /** Adds a step behind those before. */
  step<Name extends string, Result>(
    name: Name,
    step: Step<Context, Transaction, Results, Result>
  ): Saga<Context, Transaction, Results & { readonly [name in Name]: Result }>
  /** All steps in one transaction: the client's, if one is open. */
  execute(client: DatabaseClient, context: Context, options?: { readonly id?: string }): Promise<SagaResult<Results>>
  /** Begins the long-running form, and goes as far as it gets. With an id that there is already, answers how that saga is. */
  start(
    client: DatabaseClient,
    context: Context,
    options?: { readonly id?: string }
  ): Promise<SagaState<Context, Results>>
  /** Brings an event to a saga: once for each messageId, and also before the saga waits for it or was started. */
  deliver(
    client: DatabaseClient,
    event: ArrivedEvent & { readonly sagaId: string }
  ): Promise<SagaState<Context, Results> | undefined>
  /** Gives a saga up that has not ended: what was done is compensated. */
  cancel(client: DatabaseClient, sagaId: string, reason?: string): Promise<SagaState<Context, Results> | undefined>
  get(client: DatabaseClient, sagaId: string): Promise<SagaState<Context, Results> | undefined>
  /** Goes on with all that is due now, and answers how many steps and compensations were tried. */
  resume(client: DatabaseClient): Promise<number>
  /** Resumes again and again, until the signal ends it. */
  run(client: DatabaseClient, options?: RunOptions): Promise<void>
  /** Forgets sagas that ended more than `keepDays` ago, and events as old that none of them wanted. */
  prune(client: DatabaseClient, options: { readonly keepDays: number }): Promise<number>
}

const TABLE = "posthaste_saga"
const ATTEMPTS_MAX = 10
const WAIT_MS = 1_000
const WAIT_MAX_MS = 300_000

export const saga = <Context = unknown, Transaction = AnyTransaction>(
  name: string,
  options: SagaOptions = {}
): Saga<Context, Transaction, unknown> => sagaOf(name, options, []) as Saga<Context, Transaction, unknown>

const sagaOf = (
  name: string,
  options: SagaOptions,
  steps: ReadonlyArray<readonly [name: string, step: AnyStep]>
): Saga<unknown, AnyTransaction, AnyTransaction> => {
  const table = options.table ?? TABLE
  const [sagas, events] = [quoted(table), quoted(`${table}_event`)]
  const tables = sagaTables(table)
  const attemptsMax = options.attemptsMax ?? ATTEMPTS_MAX

  const emit = async (transaction: Database, step: AnyStep, context: unknown, result: unknown, sagaId: string) => {
    if (step.event === undefined) return undefined
    const event = typeof step.event === "function" ? step.event(context, result, sagaId) : step.event
    const whole = { correlationId: sagaId, ...event, org: event.org ?? options.org ?? "" }
    const client = transaction.client as DatabaseClient
    return "channel" in whole ? send(client, whole, options) : publish(client, whole, options)
  }

  const execute = async (client: DatabaseClient, context: unknown, { id }: { readonly id?: string } = {}) => {
    const waiting = steps.find(([, { waitsFor }]) => waitsFor !== undefined)
    if (waiting)
      throw new SagaSetupError(`The step ${waiting[0]} waits for an event: start the saga, execute can't wait.`)
    const sagaId = id ?? (await newId())
    return databaseOf(client).atomically(async (transaction) => {
      const results: Record<string, unknown> = {}
      const ids: Record<string, string> = {}
      for (const [stepName, step] of steps) {
        const result = await step.action(transaction.client, context, { sagaId, results, event: undefined })
        results[stepName] = result
        const emitted = await emit(transaction, step, context, result, sagaId)
        if (emitted !== undefined) ids[stepName] = emitted
      }
      return { id: sagaId, results, events: ids }
    })
  }

  /** What makes a saga due: its time has come, or what it waits for. */
  const due = `(saga.due_at <= statement_timestamp() or (saga.status = 'WAITING' and exists (
    select 1 from ${events} as event where event.saga = saga.name and event.saga_id = saga.id
      and event.step is null and saga.waits_for @> to_jsonb(event.name))))`

  const columns = `saga.id, saga.status, saga.context::text as context, saga.results::text as results, saga.done::text as done,
    saga.waits_for::text as waits_for, saga.attempts::text as attempts, saga.last_error`

  const read = async ({ run }: Database, sagaId: string): Promise<Found | undefined> => {
    const [row] = await run(
      `select ${columns}, ${due}::text as is_due, (saga.due_at <= statement_timestamp())::text as is_late
       from ${sagas} as saga where saga.name = $1::text and saga.id = $2::text`,
      [name, sagaId]
    )
    return row && { state: stateOf(row), isDue: row["is_due"] === "true", isLate: row["is_late"] === "true" }
  }

  /** Locks a saga for the rest of the transaction: one that is named, or any that is due and that nobody else has. */
  const lock = async ({ run }: Database, sagaId: string | null): Promise<string | undefined> => {
    if (sagaId !== null) {
      const text = `select id from ${sagas} where name = $1::text and id = $2::text for update`
      const [row] = await run(text, [name, sagaId])
      return row?.["id"] ?? undefined
    }
    const [late] = await run(
      `select id from ${sagas} where name = $1::text and status in ('RUNNING', 'WAITING', 'COMPENSATING')
         and due_at <= statement_timestamp()
       order by due_at limit 1 for update skip locked`,
      [name]
    )
    if (late !== undefined) return late["id"]!
    // Found by the events, of which few wait for long: many sagas may wait for years.
    const [called] = await run(
      `select saga.id from ${events} as event
       join ${sagas} as saga on saga.name = event.saga and saga.id = event.saga_id and saga.status = 'WAITING'
       where event.saga = $1::text and event.step is null and saga.waits_for @> to_jsonb(event.name)
       limit 1 for update of saga skip locked`,
      [name]
    )
    return called?.["id"] ?? undefined
  }

  const update = async ({ run }: Database, sagaId: string, change: Change) => {
    await run(
      `update ${sagas} set status = $3::text, results = $4::text::jsonb, done = $5::text::jsonb, waits_for = $6::text::jsonb,
         attempts = $7::text::int, last_error = $8::text, updated_at = now(),
         due_at = clock_timestamp() + $9::text::float8 * interval '1 ms'
       where name = $1::text and id = $2::text`,
      [
        name,
        sagaId,
        change.status,
        JSON.stringify(change.results),
        JSON.stringify(change.done),
        JSON.stringify(change.waitsFor ?? []),
        String(change.attempts ?? 0),
        change.lastError ?? null,
        change.dueInMs === null ? null : String(change.dueInMs)
      ]
    )
  }

  /** One step or one compensation, in a transaction. False when nothing is due. */
  const turn = (client: unknown, wanted: string | null): Promise<boolean> =>
    atomicallyWith(client, tables, async (transaction) => {
      const sagaId = await lock(transaction, wanted)
      if (sagaId === undefined) return false
      // Read behind the lock, so that nothing that another has done meanwhile is missed.
      const found = await read(transaction, sagaId)
      if (!found?.isDue) return false
      await update(transaction, sagaId, await next(transaction, found))
      return true
    })

  const next = async (transaction: Database, found: Found): Promise<Change> => {
    const { state } = found
    const gone = state.done.find((done, index) => steps[index]?.[0] !== done)
    if (gone !== undefined) {
      const lastError = `The step ${gone} was done, and the definition of the saga does not have it there any more.`
      const status = state.status === "WAITING" ? "RUNNING" : state.status
      return { ...state, status, lastError, dueInMs: WAIT_MAX_MS }
    }
    return state.status === "COMPENSATING" ? back(transaction, state) : forth(transaction, found)
  }

  const forth = async (transaction: Database, { state, isLate }: Found): Promise<Change> => {
    const [stepName, step] = steps[state.done.length] ?? []
    if (stepName === undefined || step === undefined) return ended(state, "COMPLETED")
    const waitsFor = step.waitsFor === undefined ? [] : [step.waitsFor].flat()
    const event = waitsFor.length === 0 ? undefined : await arrived(transaction, state.id, waitsFor)
    if (waitsFor.length > 0 && event === undefined) {
      if (state.status === "WAITING" && isLate) {
        return giveUp(state, `The step ${stepName} waited in vain for ${waitsFor.join(" or ")}.`)
      }
      return { ...state, status: "WAITING", waitsFor, dueInMs: step.timeoutMs ?? null }
    }
    try {
      return await transaction.atomically(async (inner) => {
        const info = { sagaId: state.id, results: state.results, event }
        const result = (await step.action(inner.client, state.context, info)) ?? null
        await emit(inner, step, state.context, result, state.id)
        if (event !== undefined) await consume(inner, state.id, event.messageId, stepName)
        const done = [...state.done, stepName]
        const results = { ...state.results, [stepName]: result }
        const after = { status: "RUNNING", results, done, dueInMs: 0 } as const
        return done.length === steps.length ? ended(after, "COMPLETED") : after
      })
    } catch (error) {
      const failed = failure(state, stepName, error)
      if (isAbort(error) || failed.attempts >= attemptsMax) return giveUp(state, failed.lastError)
      return { ...failed, status: "RUNNING" }
    }
  }

  const back = async (transaction: Database, state: SagaState): Promise<Change> => {
    const index = state.done.length - 1
    const [stepName, step] = steps[index] ?? []
    if (stepName === undefined || step === undefined) return ended(state, "COMPENSATED")
    try {
      return await transaction.atomically(async (inner) => {
        await step.compensate?.(inner.client, state.context, state.results[stepName], state.id)
        const after = { ...state, done: state.done.slice(0, index), attempts: 0, dueInMs: 0 }
        return index === 0 ? ended(after, "COMPENSATED") : after
      })
    } catch (error) {
      return failure(state, stepName, error)
    }
  }

  const arrived = async ({ run }: Database, sagaId: string, waitsFor: ReadonlyArray<string>) => {
    const [row] = await run(
      `select name, message_id, data::text as data from ${events}
       where saga = $1::text and saga_id = $2::text and step is null and $3::text::jsonb @> to_jsonb(name)
       order by arrival limit 1`,
      [name, sagaId, JSON.stringify(waitsFor)]
    )
    return row && { name: row["name"]!, messageId: row["message_id"]!, data: JSON.parse(row["data"]!) as unknown }
  }

  const consume = ({ run }: Database, sagaId: string, messageId: string, step: string) =>
    run(`update ${events} set step = $4::text where saga = $1::text and saga_id = $2::text and message_id = $3::text`, [
      name,
      sagaId,
      messageId,
      step
    ])

  /** As far as it gets; then how it is. */
  const advance = async (client: unknown, sagaId: string) => {
    while (await turn(client, sagaId)) {}
    return stateNow(client, sagaId)
  }

  const stateNow = async (client: unknown, sagaId: string) => {
    const found = await atomicallyWith(client, tables, (transaction) => read(transaction, sagaId))
    return found?.state
  }

  const start = async (client: DatabaseClient, context: unknown, { id }: { readonly id?: string } = {}) => {
    if (steps.length === 0) throw new SagaSetupError(`The saga ${name} has no step.`)
    const sagaId = id ?? (await newId())
    await atomicallyWith(client, tables, ({ run }) =>
      run(
        `insert into ${sagas} (name, id, status, context, due_at) values ($1::text, $2::text, 'RUNNING', $3::text::jsonb, now())
         on conflict do nothing`,
        [name, sagaId, JSON.stringify(context ?? null)]
      )
    )
    return (await advance(client, sagaId))!
  }

  const deliver = async (client: DatabaseClient, event: ArrivedEvent & { readonly sagaId: string }) => {
    for (const field of ["sagaId", "name", "messageId"] as const) {
      if (typeof event[field] !== "string" || event[field] === "")
        throw new TypeError(`deliver needs ${field}, a text.`)
    }
    await atomicallyWith(client, tables, ({ run }) =>
      run(
        `insert into ${events} (saga, saga_id, message_id, name, data)
         values ($1::text, $2::text, $3::text, $4::text, $5::text::jsonb) on conflict do nothing`,
        [name, event.sagaId, event.messageId, event.name, JSON.stringify(event.data ?? null)]
      )
    )
    return advance(client, event.sagaId)
  }

  const cancel = async (client: DatabaseClient, sagaId: string, reason = "It was cancelled.") => {
    await atomicallyWith(client, tables, async (transaction) => {
      await lock(transaction, sagaId)
      const state = (await read(transaction, sagaId))?.state
      if (state?.status === "RUNNING" || state?.status === "WAITING") {
        await update(transaction, sagaId, giveUp(state, reason))
      }
    })
    return advance(client, sagaId)
  }

  const resume = async (client: DatabaseClient) => {
    let turns = 0
    while (await turn(client, null)) turns++
    return turns
  }

  const run = async (client: DatabaseClient, { signal, everyMs = 1_000, onError }: RunOptions = {}) => {
    while (!signal?.aborted) {
      await resume(client).catch((error: unknown) => onError?.(error))
      await sleep(everyMs, signal).catch(() => {})
    }
  }

  const prune = async (client: DatabaseClient, { keepDays }: { readonly keepDays: number }) =>
    atomicallyWith(client, tables, async (transaction) => {
      const old = "now() - $2::text::float8 * interval '1 day'"
      const forgotten = await transaction.run(
        `delete from ${sagas} where name = $1::text and status in ('COMPLETED', 'COMPENSATED') and updated_at < ${old} returning id`,
        [name, String(keepDays)]
      )
      await transaction.run(
        `delete from ${events} as event where event.saga = $1::text and event.received_at < ${old}
         and not exists (select 1 from ${sagas} as saga where saga.name = event.saga and saga.id = event.saga_id)`,
        [name, String(keepDays)]
      )
      return forgotten.length
    })

  return {
    step: (stepName, step) => {
      if (steps.some(([other]) => other === stepName)) throw new SagaSetupError(`There are two steps ${stepName}.`)
      return sagaOf(name, options, [...steps, [stepName, step as AnyStep]])
    },
    execute,
    start,
    deliver,
    cancel,
    get: stateNow,
    resume,
    run,
    prune
  }
}

/** What a turn makes of a saga. */
interface Change {
  readonly status: SagaStatus
  readonly results: Partial<Record<string, unknown>>
  readonly done: ReadonlyArray<string>
  readonly waitsFor?: ReadonlyArray<string>
  readonly attempts?: number
  readonly lastError?: string | null
  /** When it is due again; null when only an event makes it so, or nothing. */
  readonly dueInMs: number | null
}

interface Found {
  readonly state: SagaState
  readonly isDue: boolean
  /** Its time has come, whether or not an event has. */
  readonly isLate: boolean
}

/** By name: an application may have loaded this library twice, once for each kind of module. */
const isAbort = (error: unknown): boolean => error instanceof Error && error.name === "AbortSaga"

const ended = (state: Omit<Change, "dueInMs">, status: SagaStatus): Change => ({
  ...state,
  status,
  waitsFor: [],
  attempts: 0,
  dueInMs: null
})

const giveUp = (state: SagaState, lastError: string): Change => ({
  ...state,
  status: "COMPENSATING",
  waitsFor: [],
  attempts: 0,
  lastError,
  dueInMs: 0
})

const failure = (state: SagaState, step: string, error: unknown) => ({
  ...state,
  waitsFor: [],
  attempts: state.attempts + 1,
  lastError: `${step}: ${error instanceof Error ? error.message : String(error)}`,
  dueInMs: Math.min(WAIT_MS * 2 ** state.attempts, WAIT_MAX_MS)
})

const stateOf = (row: Row): SagaState => ({
  id: row["id"]!,
  status: row["status"] as SagaStatus,
  context: JSON.parse(row["context"]!),
  results: JSON.parse(row["results"]!),
  done: JSON.parse(row["done"]!),
  waitsFor: JSON.parse(row["waits_for"]!),
  attempts: Number(row["attempts"]),
  lastError: row["last_error"]!
})

const newId = async (): Promise<string> => (await webCrypto()).randomUUID()

/** The tables, for those who make their tables themselves. */
export const sagaTables = (table: string = TABLE): string => `
  create table if not exists ${quoted(table)} (
    name text not null,
    id text not null,
    status text not null,
    context jsonb not null,
    results jsonb not null default '{}',
    done jsonb not null default '[]',
    waits_for jsonb not null default '[]',
    attempts int not null default 0,
    last_error text,
    due_at timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (name, id)
  );
  create index if not exists ${quoted(`${table.split(".").at(-1)}_due`)} on ${quoted(table)} (name, due_at)
    where status in ('RUNNING', 'WAITING', 'COMPENSATING');
  create table if not exists ${quoted(`${table}_event`)} (
    saga text not null,
    saga_id text not null,
    message_id text not null,
    name text not null,
    data jsonb not null,
    arrival bigint generated always as identity,
    received_at timestamptz not null default now(),
    step text,
    primary key (saga, saga_id, message_id)
  );
  create index if not exists ${quoted(`${table.split(".").at(-1)}_event_new`)} on ${quoted(`${table}_event`)} (saga)
    where step is null;`

/** Makes the tables, for those whose application may not. */
export const createSagas = (client: DatabaseClient, table: string = TABLE): Promise<void> =>
  createTables(databaseOf(client), sagaTables(table))
