/** What a run found: the JSON it leaves behind, and the tables a person reads. */
import type { Accepts } from "./accepts.ts"
import type { ClaimTime } from "./claims.ts"
import type { Delivery } from "./deliveries.ts"
import type { Fan, FanOut } from "./fanOut.ts"
import type { Isolation, IsolationRound, Situation } from "./isolation.ts"
import type { Latency } from "./latency.ts"
import type { OneKey } from "./oneKey.ts"
import { isSound, type Reconciliation } from "./reconcile.ts"
import { median } from "./statistics.ts"
import type { Stock } from "./stock.ts"

export const contestants = {
  bare: "(a) bare loop of signed POSTs",
  posthaste: "(b) Posthaste, worker",
  posthasteListing: "(b2) Posthaste, worker + projector",
  posthasteScraped: "(m) Posthaste, worker, metrics read every second",
  posthasteTraced: "(m) Posthaste, worker, 1 % of traces",
  graphileTuned: "(c) graphile-worker, tuned",
  graphileDefault: "(c) graphile-worker, default",
  pgBoss: "(c) pg-boss, batches of 500"
} as const
export type Contestant = keyof typeof contestants

export type Round = { readonly [C in Contestant]?: Delivery }

export interface Report {
  readonly at: string
  readonly machine: Readonly<Record<string, string | number>>
  readonly server: Readonly<Record<string, string>>
  readonly messages: number
  readonly bytes: number
  readonly reply: string
  readonly rounds: ReadonlyArray<Round>
  readonly latency: ReadonlyArray<Latency>
  readonly accepts: Accepts | null
  readonly claims: ReadonlyArray<ClaimTime>
  readonly isolation: Isolation | null
  readonly oneKey: OneKey | null
  readonly fanOut: FanOut | null
  readonly stock: Stock | null
}

export const reconciliations = (report: Report): ReadonlyArray<Reconciliation> => [
  ...report.rounds.flatMap((round) => Object.values(round).map((delivery) => delivery.reconciliation)),
  ...report.latency.map((latency) => latency.reconciliation),
  ...(report.accepts === null ? [] : [report.accepts.reconciliation]),
  ...situationsOf(report.isolation).map(([, situation]) => situation.reconciliation),
  ...(report.oneKey === null ? [] : [report.oneKey.alone.reconciliation, report.oneKey.beside.reconciliation]),
  ...(report.stock?.rounds ?? []).flatMap(({ before, after }) => [before.reconciliation, after.reconciliation]),
  ...(report.fanOut === null ? [] : [report.fanOut.wide.reconciliation, report.fanOut.steady.reconciliation])
]

/** Every measurement with the name of its situation. */
const situationsOf = (isolation: Isolation | null): ReadonlyArray<readonly [string, Situation]> =>
  isolation === null
    ? []
    : [
        ...isolation.rounds.map((round) => ["alone", round.alone] as const),
        ...isolation.rounds.map((round) => ["beside one that hangs, its circuit never opens", round.beside] as const),
        ["while the backlog is being listed", isolation.listing],
        ["alone, again", isolation.opening.alone],
        ["beside one whose circuit opens", isolation.opening.beside]
      ]

/** Rounds are compared within themselves: a slow minute of the machine is slow for everybody in it. */
const ratiosOf = (rounds: ReadonlyArray<Round>, one: Contestant, other: Contestant): ReadonlyArray<number> =>
  rounds.flatMap((round) => {
    const [a, b] = [round[one], round[other]]
    return a === undefined || b === undefined ? [] : [a.perSecond / b.perSecond]
  })

/** As `ratiosOf`, by CPU time: others at work on the machine move it less than any rate. */
const cpuRatiosOf = (rounds: ReadonlyArray<Round>, one: Contestant, other: Contestant): ReadonlyArray<number> =>
  rounds.flatMap((round) => {
    const [a, b] = [round[one]?.cpu, round[other]?.cpu].map((cpu) =>
      cpu == null || cpu.own === null || cpu.server === null ? null : cpu.own + cpu.server
    )
    return a == null || b == null ? [] : [a / b]
  })

/** How much a claim slows down from the smallest backlog to the biggest, in each of the shapes measured. */
const claimSlowdowns = (claims: ReadonlyArray<ClaimTime>): ReadonlyArray<number> => {
  const shapes = Object.values(Object.groupBy(claims, ({ lanes, statistics }) => `${lanes} ${statistics}`))
  return shapes.map((shape) => {
    const times = shape!.toSorted((a, b) => a.waiting - b.waiting)
    return times.at(-1)!.medianMs / times[0]!.medianMs
  })
}

/** How much later the slowest hundredth of the healthy destinations' messages arrives beside one that hangs. */
const p99Ratio = ({ alone, beside }: IsolationRound): number =>
  beside.acceptedToReceived.p99 / alone.acceptedToReceived.p99

/** A busy machine moves this much less than any latency. */
const cpuRatio = ({ alone, beside }: IsolationRound): ReadonlyArray<number> => {
  const [before, after] = [alone, beside].map(({ cpu }) =>
    cpu.own === null || cpu.server === null ? null : cpu.own + cpu.server
  )
  return before == null || after == null ? [] : [after / before]
}

/** What the machine alone makes of the figure: a ratio within this spread says nothing. */
const noiseOf = (isolation: Isolation | null): ReadonlyArray<number> => {
  const p99s = isolation?.rounds.map(({ alone }) => alone.acceptedToReceived.p99) ?? []
  return p99s.map((p99) => p99 / median(p99s))
}

export interface Spread {
  readonly median: number
  readonly lowest: number
  readonly highest: number
}

/** The comparisons that were measured. */
export const ratios = ({ rounds, claims, isolation, stock }: Report): Readonly<Record<string, Spread>> => {
  const measured = {
    "(b) ÷ (a) bare loop": ratiosOf(rounds, "posthaste", "bare"),
    "(b) ÷ graphile-worker tuned": ratiosOf(rounds, "posthaste", "graphileTuned"),
    "(b) ÷ graphile-worker default": ratiosOf(rounds, "posthaste", "graphileDefault"),
    "(b) ÷ pg-boss": ratiosOf(rounds, "posthaste", "pgBoss"),
    "(b2) ÷ (b)": ratiosOf(rounds, "posthasteListing", "posthaste"),
    "(m) metrics read every second ÷ (b)": ratiosOf(rounds, "posthasteScraped", "posthaste"),
    "(m) 1 % of traces ÷ (b)": ratiosOf(rounds, "posthasteTraced", "posthaste"),
    "(m) CPU, metrics read every second ÷ (b)": cpuRatiosOf(rounds, "posthasteScraped", "posthaste"),
    "(m) CPU, 1 % of traces ÷ (b)": cpuRatiosOf(rounds, "posthasteTraced", "posthaste"),
    "(f) claim with most ÷ fewest waiting": claimSlowdowns(claims),
    "(j) never analyzed ÷ analyzed": (stock?.rounds ?? []).map(
      ({ before, after }) => before.perSecond / after.perSecond
    ),
    "(g) p99 beside one that hangs ÷ alone": isolation?.rounds.map(p99Ratio) ?? [],
    "(g) the same when its circuit opens": isolation === null ? [] : [p99Ratio(isolation.opening)],
    "(g) p99 alone ÷ its median": noiseOf(isolation),
    "(g) CPU beside one that hangs ÷ alone": isolation?.rounds.flatMap(cpuRatio) ?? []
  }
  return Object.fromEntries(
    Object.entries(measured)
      .filter(([, values]) => values.length > 0)
      .map(([name, values]) => [
        name,
        { median: median(values), lowest: Math.min(...values), highest: Math.max(...values) }
      ])
  )
}

type Cell = string | number | null | undefined

const shown = (cell: Cell, digits: number): string =>
  typeof cell === "number" && Number.isFinite(cell)
    ? cell.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })
    : typeof cell === "string"
      ? cell
      : "–"

const table = (
  head: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<Cell>>,
  digits: ReadonlyArray<number> = []
): string => {
  const cells = [head, ...rows.map((row) => row.map((cell, column) => shown(cell, digits[column] ?? 0)))]
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)))
  const lines = cells.map((row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join("  ")
  )
  return [lines[0], "─".repeat(widths.reduce((sum, width) => sum + width + 2, -2)), ...lines.slice(1)].join("\n")
}

const deliveryRows = (rounds: ReadonlyArray<Round>): ReadonlyArray<ReadonlyArray<Cell>> =>
  (Object.keys(contestants) as Array<Contestant>).flatMap((contestant) => {
    const deliveries = rounds.flatMap((round) => round[contestant] ?? [])
    if (deliveries.length === 0) return []
    const middle = (rate: (delivery: Delivery) => number | null) =>
      median(deliveries.flatMap((delivery) => rate(delivery) ?? []))
    const sum = (count: (reconciliation: Reconciliation) => number) =>
      deliveries.reduce((total, { reconciliation }) => total + count(reconciliation), 0)
    return [
      [
        contestants[contestant],
        middle((delivery) => delivery.perSecond),
        median(ratiosOf(rounds, contestant, "bare")),
        middle((delivery) => delivery.steadyPerSecond),
        middle((delivery) => delivery.fromReadyPerSecond),
        middle((delivery) => delivery.settledPerSecond),
        middle((delivery) => delivery.listedPerSecond),
        middle((delivery) => delivery.cpu.own),
        middle((delivery) => delivery.cpu.server),
        sum(({ lost }) => lost),
        sum(({ duplicates }) => duplicates)
      ]
    ]
  })

const deliveryHead = [
  "delivered per second",
  "first→last",
  "÷ (a)",
  "last ¾",
  "ready→last",
  "settled",
  "listed",
  "CPU µs own",
  "PostgreSQL",
  "lost",
  "dup"
]

const latencyHead = [
  "(d) milliseconds",
  "accepted→received p50",
  "p99",
  "max",
  "scheduled→received p50",
  "p99",
  "max",
  "drained after",
  "lost",
  "dup"
]

const isolationHead = [
  "(g) milliseconds, healthy destinations",
  "accepted→received p50",
  "p99",
  "max",
  "scheduled→received p50",
  "p99",
  "max",
  "CPU µs own",
  "PostgreSQL",
  "requests that hung",
  "at a time",
  "lost",
  "dup"
]

/** One row for each situation: the median of its rounds, and the sum of what went wrong. */
const isolationRows = (isolation: Isolation): ReadonlyArray<ReadonlyArray<Cell>> =>
  [...Map.groupBy(situationsOf(isolation), ([name]) => name)].map(([name, measured]) => {
    const situations = measured.map(([, situation]) => situation)
    const middle = (figure: (situation: Situation) => number | null | undefined) =>
      median(situations.flatMap((situation) => figure(situation) ?? []))
    const sum = (count: (reconciliation: Reconciliation) => number) =>
      situations.reduce((total, { reconciliation }) => total + count(reconciliation), 0)
    return [
      name,
      ...(["acceptedToReceived", "scheduledToReceived"] as const).flatMap((span) =>
        (["p50", "p99", "max"] as const).map((p) => middle((situation) => situation[span][p]))
      ),
      middle(({ cpu }) => cpu.own),
      middle(({ cpu }) => cpu.server),
      middle(({ hanging }) => hanging?.requests),
      middle(({ hanging }) => hanging?.underWayMax),
      sum(({ lost }) => lost),
      sum(({ duplicates }) => duplicates)
    ]
  })

const fanOutHead = [
  "(i) milliseconds",
  "events",
  "request→201 p50",
  "p99",
  "max",
  "201→received p50",
  "p99",
  "max",
  "lost",
  "dup"
]

const fanOutFigures = ({ events, requestToAccepted, acceptedToReceived, reconciliation }: Fan): ReadonlyArray<Cell> => [
  events,
  ...[requestToAccepted, acceptedToReceived].flatMap(({ p50, p99, max }) => [p50, p99, max]),
  reconciliation.lost,
  reconciliation.duplicates
]

export const print = (report: Report): string => {
  const { rounds, latency, accepts, claims, isolation, oneKey, fanOut, stock } = report
  const parts = [
    `Posthaste bench, ${report.at}\n${describe(report.machine)}\nPostgreSQL: ${describe(report.server)}\n` +
      `${report.messages.toLocaleString("en-US")} messages of ${report.bytes} bytes; median of ${rounds.length} interleaved rounds`
  ]
  if (rounds.some((round) => Object.keys(round).length > 0))
    parts.push(table(deliveryHead, deliveryRows(rounds), [0, 0, 2]))
  if (latency.length > 0)
    parts.push(
      table(
        latencyHead,
        latency.map((row) => [
          `at ${row.offeredPerSecond}/s offered`,
          ...[row.acceptedToReceived, row.scheduledToReceived].flatMap(({ p50, p99, max }) => [p50, p99, max]),
          row.drainMs,
          row.reconciliation.lost,
          row.reconciliation.duplicates
        ]),
        [0, 1, 1, 1, 1, 1, 1, 1]
      )
    )
  if (accepts !== null)
    parts.push(
      table(
        ["(e) accepted per second", "connections", "rate", "lost", "dup"],
        [
          [
            "single messages over HTTP",
            accepts.connections,
            accepts.perSecond,
            accepts.reconciliation.lost,
            accepts.reconciliation.duplicates
          ]
        ]
      )
    )
  if (claims.length > 0)
    parts.push(
      table(
        ["(f) a claim of 500, milliseconds", "lanes", "waiting", "median", "p95"],
        claims.map((claim) => [
          `${claim.statistics} statistics`,
          claim.lanes,
          claim.waiting,
          claim.medianMs,
          claim.p95Ms
        ]),
        [0, 0, 0, 2, 2]
      )
    )
  if (isolation !== null)
    parts.push(
      table(isolationHead, isolationRows(isolation), [0, 1, 1, 1, 1, 1, 1]),
      `${isolation.healthy} healthy destinations beside one with ${isolation.waiting.toLocaleString("en-US")} messages that ` +
        `answers nothing for ${isolation.hangMs / 1000} s; ${shown(isolation.listing.left, 0)} were not listed yet after the listing was measured`
    )
  if (fanOut !== null)
    parts.push(
      table(
        fanOutHead,
        [
          [`one event to ${fanOut.wide.endpoints} endpoints, in turn`, ...fanOutFigures(fanOut.wide)],
          [
            `${fanOut.steady.perSecond} events/s to ${fanOut.steady.endpoints} endpoints each`,
            ...fanOutFigures(fanOut.steady)
          ]
        ],
        [0, 1, 1, 1, 1, 1, 1]
      ),
      `${fanOut.wide.bodies} bodies were stored for the first row`
    )
  if (oneKey !== null)
    parts.push(
      table(
        ["(h) delivered per second", "rate", "lost", "dup"],
        (
          [
            ["one key alone", oneKey.alone],
            [`one key, while ${shown(oneKey.others, 0)} others move`, oneKey.beside]
          ] as const
        ).map(([name, { perSecond, reconciliation }]) => [
          name,
          perSecond,
          reconciliation.lost,
          reconciliation.duplicates
        ])
      )
    )
  if (stock !== null)
    parts.push(
      table(
        [`(j) PostgreSQL ${stock.server}, ${shown(stock.messages, 0)} messages`, "rate", "CPU µs own", "PostgreSQL"],
        (["before", "after"] as const).map((when) => {
          const deliveries = stock.rounds.map((round) => round[when])
          return [
            `${when} its first analyze`,
            median(deliveries.map(({ perSecond }) => perSecond)),
            median(deliveries.flatMap(({ cpu }) => cpu.own ?? [])),
            median(deliveries.flatMap(({ cpu }) => cpu.server ?? []))
          ]
        })
      )
    )
  const spreads = Object.entries(ratios(report)).map(([name, { median, lowest, highest }]) => [
    name,
    median,
    lowest,
    highest
  ])
  if (spreads.length > 0) parts.push(table(["ratios", "median", "lowest", "highest"], spreads, [0, 2, 2, 2]))
  const unsound = reconciliations(report).filter((reconciliation) => !isSound(reconciliation))
  parts.push(
    unsound.length === 0
      ? `Reconciled by id: ${reconciliations(report)
          .reduce((sum, { sent }) => sum + sent, 0)
          .toLocaleString("en-US")} messages sent, none lost.`
      : `NOT RECONCILED, the figures above mean nothing:\n${unsound.map((reconciliation) => JSON.stringify(reconciliation)).join("\n")}`
  )
  return parts.join("\n\n")
}

const describe = (facts: Readonly<Record<string, string | number>>): string =>
  Object.entries(facts)
    .map(([name, value]) => `${name} ${value}`)
    .join(" · ")
