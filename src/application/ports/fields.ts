/**
 * The fields of requests that channels and the API share. The words after "must be" in a problem come from these
 * annotations. A text with characters that a database, a log or a header can't hold (control characters, half a
 * surrogate pair) is refused.
 */
import { Schema, SchemaGetter } from "effect"
import { attemptsMaxOf, capMsOf, presets, RetryPolicy, shortestWaitMs } from "../../domain/delivery/retry.ts"
import { onDeadLetter } from "../../domain/message/queueChange.ts"
import type { Fault } from "./errors.ts"

const uncontrolled = "^[^\\u0000-\\u001f\\u007f]*$"
const isUncontrolled = new RegExp(uncontrolled)

export const text = (maxLength: number) =>
  Schema.String.check(
    Schema.makeFilter(
      (value) =>
        (value.length > 0 && value.length <= maxLength && isUncontrolled.test(value) && value.isWellFormed()) ||
        `must be 1 to ${maxLength} characters without control characters`,
      {
        title: `1 to ${maxLength} characters without control characters`,
        toJsonSchema: () => ({ minLength: 1, maxLength, pattern: uncontrolled })
      }
    )
  )

export const headerText = (maxLength: number) =>
  Schema.String.check(
    Schema.isPattern(new RegExp(`^[\\x21-\\x7e]([\\x20-\\x7e]{0,${maxLength - 2}}[\\x21-\\x7e])?$`), {
      message: `must be 1 to ${maxLength} printable ASCII characters without spaces at the ends`,
      toJsonSchema: () => ({ minLength: 1, maxLength, pattern: "^[!-~]([ -~]*[!-~])?$" })
    })
  )

/** Text of at most 255 bytes, perhaps none: AMQP has one byte for the length. */
export const brokerText = Schema.String.check(
  Schema.makeFilter(
    (value) =>
      (new TextEncoder().encode(value).length <= 255 && isUncontrolled.test(value) && value.isWellFormed()) ||
      "must be at most 255 bytes without control characters",
    { toJsonSchema: () => ({ maxLength: 255, pattern: uncontrolled }) }
  )
)

export const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

const presetNames = ["webhook", "whatsapp", "payments", "patient"] as const satisfies ReadonlyArray<
  keyof typeof presets
>

const AGE_MIN_MS = 1_000

const isPolicy = Schema.is(RetryPolicy)

const contradictionsIn = (given: object): ReadonlyArray<Fault> => {
  if ("preset" in given) {
    const others = Object.keys(given).length > 1
    return others ? [{ field: "preset", reason: "names a whole policy: nothing may stand beside it" }] : []
  }
  if (!isPolicy(given)) return []
  const { ageMaxMs, jitter } = given
  const faults: Array<Fault> = []
  if (given.strategy !== "schedule") {
    const { strategy, baseMs } = given
    const capMs = capMsOf(given)
    if (baseMs === 0 && strategy !== "fixed")
      faults.push({ field: "baseMs", reason: `must be above 0: waits that are ${strategy} grow from it` })
    if (capMs < baseMs)
      faults.push({ field: "capMs", reason: `must not be less than baseMs: no wait would be longer than ${capMs} ms` })
  }
  if (jitter?.[1] === 0)
    faults.push({ field: "jitter", reason: "must leave a wait: its second factor must be above 0" })
  if (ageMaxMs === undefined) return faults
  const first = shortestWaitMs(given)
  if (ageMaxMs < AGE_MIN_MS)
    faults.push({
      field: "ageMaxMs",
      reason: `must be ${AGE_MIN_MS} or more: a message would be too old before it is sent`
    })
  else if (attemptsMaxOf(given) > 1 && ageMaxMs < first)
    faults.push({ field: "ageMaxMs", reason: `must leave time for a retry: the first comes after ${first} ms or more` })
  return faults
}

export const REFUSES = "refuses"

export type Refuses = (given: object) => ReadonlyArray<Fault>

/**
 * The annotation of an object whose fields may contradict each other: `judge` names them, and decoding reports no other
 * fault of the object. It judges requests and never stored values, so it may become stricter.
 */
const refuses = (judge: Refuses) => ({ [REFUSES]: judge })

const judged = refuses(contradictionsIn)

const capital = (text: string) => text[0]!.toUpperCase() + text.slice(1)

/** A policy by its name. The policy itself is stored and shown. */
const namedRetry = <Name extends (typeof presetNames)[number]>(name: Name) =>
  Schema.Struct({ preset: Schema.Literal(name) })
    .annotate({ ...judged, identifier: `${capital(name)}Preset` })
    .pipe(
      Schema.decodeTo(Schema.toType(RetryPolicy), {
        decode: SchemaGetter.transform(() => presets[name]),
        encode: SchemaGetter.forbidden(() => "a policy is shown as what it is")
      })
    )

export const Retry = Schema.Union([
  ...RetryPolicy.members.map((member) =>
    member.annotate({ ...judged, identifier: `${capital(member.fields.strategy.literal)}Retry` })
  ),
  ...presetNames.map(namedRetry)
]).annotate({
  identifier: "RetryPolicy",
  description: "When failed attempts are repeated. Left out: as the org or the channel says.",
  examples: [{ strategy: "schedule", waitsMs: [1000, 5000, 15_000, 60_000, 300_000] }],
  expected: "a retry policy",
  message: `must be {"strategy": "schedule", "waitsMs": […]} or {"strategy": "exponential" | "linear" | "fixed", "baseMs": …} or {"preset": ${presetNames.map((name) => `"${name}"`).join(" | ")}}`
})

/** One setting of a destination. Without a default it is required at creation; the default null makes it optional. */
export interface Setting {
  readonly schema: Schema.Codec<unknown, unknown>
  readonly default?: unknown
  /** Its value is the destination's public key and can't be changed. The texts are for a key that is taken. */
  readonly publicKey?: {
    readonly slug: string
    readonly title: string
    readonly detail: string
    readonly reason: string
  }
  /**
   * Shows a text, or each text of a record, that may hold secrets, with `***` in their places. A change that gives a
   * text back as it was shown leaves it as it is.
   */
  readonly hides?: (text: string) => string
}

const OnDeadLetter = Schema.Literals(onDeadLetter).annotate({
  description:
    "What a dead letter does to the messages behind it with the same orderingKey. skip: they go on without it. block: they wait until it was replayed, or this is set to skip."
})

/** The settings of every destination. A request takes at most 30 s: that bounds a stop and a probe, not the lease. */
export const commonSettings = {
  retry: { schema: Retry, default: null },
  rateLimit: {
    schema: Schema.Struct({ limit: between(1, 1_000_000), periodMs: between(1, 86_400_000) }).annotate({
      description: "The most requests that go there in a period of so many milliseconds."
    }),
    default: null
  },
  maxInFlight: {
    schema: between(1, 1000).annotate({ description: "The most requests that are under way there at once." }),
    default: 50
  },
  timeoutMs: {
    schema: between(100, 30_000).annotate({ description: "How long one request may take." }),
    default: 15_000
  },
  onDeadLetter: { schema: OnDeadLetter, default: "skip" }
} as const satisfies Record<string, Setting>
