/**
 * `facts/` holds one sample of every shape of a fact, named `Type@version`, as it is stored: the kept part and the forgettable one.
 * From the first release on samples are added and never edited: they are what a database in production holds.
 *
 * The table lists the codec of every kind of stream. What only one kind promises stands beside that kind.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import * as access from "../../src/domain/access/facts.ts"
import * as circuit from "../../src/domain/circuit/facts.ts"
import * as command from "../../src/domain/command/facts.ts"
import * as condition from "../../src/domain/condition/facts.ts"
import * as consent from "../../src/domain/consent/facts.ts"
import * as destination from "../../src/domain/destination/facts.ts"
import * as erasure from "../../src/domain/erasure/facts.ts"
import * as event from "../../src/domain/event/facts.ts"
import * as message from "../../src/domain/message/facts.ts"
import * as messageCodec from "../../src/domain/message/recorded.ts"
import type { RecordedFact, UnreadableFact } from "../../src/domain/recorded.ts"
import * as replay from "../../src/domain/replay/facts.ts"

interface Codec<Fact extends { readonly type: string }> {
  readonly toRecorded: (fact: Fact) => RecordedFact
  readonly fromRecorded: (recorded: RecordedFact) => Result.Result<Fact, UnreadableFact>
}

interface Kind {
  readonly shapes: ReadonlyArray<string>
  readonly fromRecorded: (recorded: RecordedFact) => Result.Result<{ readonly type: string }, UnreadableFact>
  /** Reads a fact and stores it again. */
  readonly rewrite: (recorded: RecordedFact) => Result.Result<RecordedFact, UnreadableFact>
}

const kind = <Fact extends { readonly type: string }>(
  { recorded }: { readonly recorded: object },
  { toRecorded, fromRecorded }: Codec<Fact>
): Kind => ({
  shapes: Object.keys(recorded),
  fromRecorded,
  rewrite: (recorded: RecordedFact) => Result.map(fromRecorded(recorded), toRecorded)
})

const kinds = {
  access: kind(access, access),
  circuit: kind(circuit, circuit),
  consent: kind(consent, consent),
  destination: kind(destination, destination),
  erasure: kind(erasure, erasure),
  event: kind(event, event),
  message: kind(message, messageCodec),
  condition: kind(condition, condition),
  command: kind(command, command),
  replay: kind(replay, replay)
}

const folder = join(import.meta.dirname, "facts")
interface Sample {
  readonly data: object
  readonly forgettable: object | null
}
const sample = (name: string): Sample => JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"))
const stored = (name: string): RecordedFact => {
  const { data, forgettable } = sample(name)
  return { name, data: JSON.stringify(data), forgettable: forgettable && JSON.stringify(forgettable) }
}
const typeOf = (name: string) => name.split("@")[0]!
const shapes = Object.values(kinds).flatMap((kind) => kind.shapes)

/** All texts in it, however deep. */
const textsIn = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string"
    ? [value]
    : typeof value === "object" && value !== null
      ? Object.values(value).flatMap(textsIn)
      : []

describe("the stored facts", () => {
  it("have a sample of every shape, and of no other", () => {
    const samples = readdirSync(folder).map((file) => file.replace(/\.json$/, ""))
    expect(samples.toSorted()).toEqual(shapes.toSorted())
  })

  it("are all in this table: every room of the domain that stores facts", () => {
    const domain = join(import.meta.dirname, "../../src/domain")
    const rooms = readdirSync(domain).filter((room) => existsSync(join(domain, room, "facts.ts")))
    expect(Object.keys(kinds).toSorted()).toEqual(rooms.toSorted())
  })

  it("belong to one kind of stream each", () => {
    expect(shapes.filter((name, index) => shapes.indexOf(name) !== index)).toEqual([])
  })
})

describe.each(Object.entries(kinds))("a stored fact of kind %s", (_, { shapes, fromRecorded, rewrite }) => {
  const read = (name: string, data: string) => fromRecorded({ name, data })

  it.each(shapes)("%s is read, and leaves its type to its name", (name) => {
    expect(Result.getOrThrow(fromRecorded(stored(name))).type).toBe(typeOf(name))
    expect(sample(name).data).not.toHaveProperty("type")
  })

  it.each(shapes)("%s is written again as it was stored", (name) => {
    const { data, forgettable = null, ...written } = Result.getOrThrow(rewrite(stored(name)))
    expect({ ...written, data: JSON.parse(data), forgettable: forgettable && JSON.parse(forgettable) }).toEqual({
      ...{ name, ...sample(name) }
    })
  })

  it.each(shapes)("%s reads as erased without its forgettable part, and is stored so again", (name) => {
    const erased = Result.getOrThrow(fromRecorded({ ...stored(name), forgettable: null }))
    for (const said of textsIn(sample(name).forgettable)) expect(JSON.stringify(erased)).not.toContain(said)
    const again = Result.getOrThrow(rewrite({ ...stored(name), forgettable: null }))
    expect(JSON.parse(again.data)).toEqual(sample(name).data)
    expect(fromRecorded(again)).toEqual(Result.succeed(erased))
  })

  it.each(["Nothing@1", "toString", "__proto__", typeOf(shapes[0]!), `${typeOf(shapes[0]!)}@9`])(
    "is refused under the name %s",
    (name) => {
      expect(Result.merge(read(name, "{}"))).toMatchObject({ _tag: "UnreadableFact", name })
    }
  )

  it.each(['{"a":1', "", "null", "[]", '"text"'])("is refused when its data is no object: %s", (data) => {
    const name = shapes.find((name) => Object.keys(sample(name).data).length > 0)!
    expect(Result.merge(read(name, data))).toMatchObject({ _tag: "UnreadableFact", name })
  })
})

describe("data of another shape is refused", () => {
  it.each([
    ["CircuitOpened@1", '{"failures": "many"}'],
    ["ReplayAdvanced@1", '{"from":0,"to":1,"replayed":1}'],
    ["AttemptStarted@1", '{"proof":"response"}'],
    ["AttemptStarted@1", '{"type":"MessageCancelled","epoch":1,"attempt":1}']
  ])("%s %s", (name, data) => {
    const owner = Object.values(kinds).find(({ shapes }) => shapes.includes(name))!
    expect(Result.merge(owner.fromRecorded({ name, data }))).toMatchObject({ _tag: "UnreadableFact", name })
  })

  it("and the field that is missing is named", () => {
    const refused = Result.merge(messageCodec.fromRecorded({ name: "AttemptStarted@1", data: '{"epoch":1}' }))
    expect(refused).toMatchObject({ message: expect.stringContaining('["attempt"]') })
  })
})

describe("a fact of a dossier, a destination or a key", () => {
  it.each([...kinds.consent.shapes, ...kinds.destination.shapes])("%s says which org it belongs to", (name) => {
    expect(sample(name).data).toMatchObject({ orgId: "acme" })
  })
})

describe("a replay", () => {
  it("is stored with a list of messages too", () => {
    const selection = { ids: ["0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02"] }
    const request = { ...sample("ReplayRequested@1").data, selection }
    const written = kinds.replay.rewrite({ name: "ReplayRequested@1", data: JSON.stringify(request) })
    expect(JSON.parse(Result.getOrThrow(written).data)).toEqual(request)
  })
})
