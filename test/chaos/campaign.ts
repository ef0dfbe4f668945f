/**
 * A campaign: faults strike a running Posthaste while clients send messages, for as long as it shall last. Then everything is
 * left to heal, and a witness who saw requests and answers only says what became of the messages.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { monotonicNow } from "../../bench/monotonicNow.ts"
import { startRemote } from "../../bench/remote.ts"
import { runToEnd } from "../servers/posthaste.ts"
import { inWords, type Kind, planOf } from "./plan.ts"
import type { Judgement, Witness } from "./witness.ts"
import { makeWorld, type Setting } from "./world.ts"

export interface Course extends Setting {
  readonly seed: number
  /** Asked before each round. */
  readonly isOver: (rounds: number, passedMs: number) => boolean
  readonly kinds: ReadonlyArray<Kind>
  readonly faultLastsMaxMs: number
  readonly clients: number
  readonly pauseMs: number
  /** How long is waited for everybody to be served again before the next round begins. */
  readonly patienceMs: number
  /** How long messages have to end after the last fault. */
  readonly restMs: number
  readonly say: (line: string) => void
}

export interface Healed {
  readonly faults: string
  /** Until each API accepts and each receiver gets what was asked for after the fault; null when that did not come about. */
  readonly recoveredMs: number | null
  /** Until nothing accepted before waited any more; null where the next round came first. */
  readonly caughtUpMs: number | null
}

export interface Report extends Judgement {
  readonly rounds: ReadonlyArray<Healed>
  /** Messages that have not ended in DELIVERED, by the counts of the API. */
  readonly stuck: number
  /** What the API counts, when that is not what the witness accepted. */
  readonly miscounted: string | null
  /** What `posthaste streams verify` said, and what it ended with. */
  readonly verified: { readonly exitCode: number | null; readonly said: string }
  readonly endedByThemselves: ReadonlyArray<string>
  readonly noDisk: string | null
  /** What the processes and the database printed. */
  readonly printed: Readonly<Record<string, string>>
}

const ORG = "chaos"
const LOOKS_EVERY_MS = 100

export const campaign = async (course: Course): Promise<Report> => {
  const { seed, say } = course
  const world = await makeWorld(course)
  const witness = startRemote<Witness>(import.meta.resolve("./witness.ts"))
  try {
    const apis = world.processes.flatMap(({ url }) => url ?? [])
    const { operatorKey: key } = world
    const kinds = course.kinds.filter((kind) => kind !== "fillDisk" || world.noDisk === null)
    if (world.noDisk !== null && course.kinds.includes("fillDisk")) say(`full disk: not tried (${world.noDisk})`)
    await witness.ask("begin", { seed, apis, key, org: ORG, clients: course.clients, pauseMs: course.pauseMs })

    const rounds: Array<Healed> = []
    const began = monotonicNow()
    const plan = planOf(seed, { processes: course.roles.length, kinds, lastsMaxMs: course.faultLastsMaxMs })
    for (const { quietMs, faults } of plan) {
      if (course.isOver(rounds.length, monotonicNow() - began)) break
      await sleep(quietMs)
      const words = faults.map(inWords).join(" and ")
      await Promise.all(faults.map(world.strike))
      const healed = { faults: words, ...(await recovery(witness, apis, course.patienceMs)) }
      rounds.push(healed)
      const { took } = await witness.ask("counts")
      say(`${rounds.length}. ${words}: ${told(healed)}, ${took} delivered so far`)
    }

    await witness.ask("end")
    const restSince = monotonicNow()
    while ((await witness.ask("olderThan", Number.POSITIVE_INFINITY)) > 0 && monotonicNow() - restSince < course.restMs)
      await sleep(LOOKS_EVERY_MS)
    const judgement = await witness.ask("judge")
    const { stuck, miscounted } = await counted(apis[0]!, key, judgement.accepted, course.restMs)
    const verified = await runToEnd({ DATABASE_URL: world.databaseUrl, POSTHASTE_LOG_FORMAT: "text" }, commandLine, [
      "streams",
      "verify"
    ])
    return {
      ...judgement,
      rounds,
      stuck,
      miscounted,
      verified: { exitCode: verified.exitCode, said: verified.printed.trim() },
      endedByThemselves: world.processes.flatMap(({ ends }) => ends),
      noDisk: world.noDisk,
      printed: {
        ...Object.fromEntries(world.processes.map(({ name, printed }) => [name, printed()])),
        database: world.database.log()
      }
    }
  } finally {
    await witness.stop()
    await world.close()
  }
}

const commandLine = new URL("../../src/cli.ts", import.meta.url).pathname

type Asked = ReturnType<typeof startRemote<Witness>>

const recovery = async (witness: Asked, apis: ReadonlyArray<string>, patienceMs: number) => {
  const since = monotonicNow()
  const passed = () => monotonicNow() - since
  let recoveredMs: number | null = null
  let caughtUpMs: number | null = null
  while (passed() < patienceMs && (recoveredMs === null || caughtUpMs === null)) {
    await sleep(LOOKS_EVERY_MS)
    if (recoveredMs === null && (await witness.ask("hasRecovered", { since, apis }))) recoveredMs = passed()
    if (caughtUpMs === null && (await witness.ask("olderThan", since)) === 0) caughtUpMs = passed()
  }
  return { recoveredMs, caughtUpMs }
}

const inSeconds = (ms: number | null) => (ms === null ? "not in time" : `${(ms / 1_000).toFixed(1)} s`)

const told = ({ recoveredMs, caughtUpMs }: Pick<Healed, "recoveredMs" | "caughtUpMs">) =>
  `recovered ${inSeconds(recoveredMs)}, nothing older waits ${inSeconds(caughtUpMs)}`

/** The counts follow the facts, so they are asked until they agree. */
const counted = async (api: string, key: string, accepted: number, withinMs: number) => {
  const since = monotonicNow()
  for (;;) {
    const response = await fetch(`${api}/api/v1/outbound/stats`, {
      headers: { authorization: `Bearer ${key}`, "x-org-id": ORG }
    })
    const { byStatus } = (await response.json()) as { readonly byStatus: Readonly<Record<string, number>> }
    const delivered = byStatus["DELIVERED"] ?? 0
    const all = Object.values(byStatus).reduce((sum, count) => sum + count, 0)
    const agrees = delivered === accepted && all === accepted
    if (agrees || monotonicNow() - since > withinMs)
      return { stuck: all - delivered, miscounted: agrees ? null : JSON.stringify({ accepted, ...byStatus }) }
    await sleep(LOOKS_EVERY_MS)
  }
}
