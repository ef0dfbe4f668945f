/** docs/lifecycle.md is drawn from the machine. Change the law, and this test shows which words change. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { messageMachine, statuses } from "../../../src/domain/message/machine.ts"

type Guard = keyof typeof messageMachine.implementations.guards
type Action = keyof typeof messageMachine.implementations.actions
type Place = keyof typeof messageMachine.states

interface Arrow {
  readonly from: Place
  readonly fact: string
  readonly to: Place
  readonly guard: Guard | null
  readonly action: Action | null
}

const places = Object.keys(messageMachine.states) as ReadonlyArray<Place>

const arrows: ReadonlyArray<Arrow> = places.flatMap((from) =>
  [...messageMachine.states[from]!.transitions].flatMap(([fact, choices]) =>
    choices.map((choice) => ({
      from,
      fact,
      to: (choice.target?.[0]?.key ?? from) as Place,
      guard: (choice.guard ?? null) as Guard | null,
      action: (choice.actions[0] ?? null) as Action | null
    }))
  )
)

/** The meaning of each state for a reader of the message. */
const meaning: Record<Place, string> = {
  NEW: "Nothing has been accepted yet; the stream does not exist.",
  QUEUED: "Accepted and waiting in its lane: for its time, for a retry or for its turn.",
  SENDING: "An attempt has begun, and its outcome is not known or not stored yet.",
  SENT: "The destination took the message; a proof of delivery to the recipient may follow.",
  DELIVERED: "Delivery to the recipient is proven.",
  FAILED: "Refused for good. The message is a dead letter until it is replayed.",
  DEAD_LETTER:
    "Given up: no attempt is left, the message is too old, or its outcome is unknown. The message is a dead letter until it is replayed.",
  CANCELLED: "Cancelled while it waited.",
  EXPIRED: "Its time ran out while it waited."
}

const condition: Record<Guard, string> = {
  isNextAttempt: "the attempt is the next of this epoch, and the policy allows one more",
  closesOpenAttempt: "the attempt is open or in doubt",
  isProven: "a receipt of this epoch says that an attempt was taken, and the fact names the last attempt",
  leavesAnAttempt:
    "the attempt is open, or in doubt and now known to have failed; the fact names a time to retry, and attempts are left",
  leavesNoAttempt: "the attempt is open, or in doubt and now known to have failed; the fact names no time to retry",
  isDeferred: "the attempt is open, and not in doubt",
  mayBeDoubted: "the attempt is open or in doubt, and questions about it are left",
  isSettled: "the last attempt is closed, and no attempt follows",
  isTooOld: "the message grew too old while it waited",
  isByReceipt: "a receipt reported the failure",
  isNextEpoch: "the fact opens the next epoch, and the message has a body: its own, or another one with the fact",
  isSooner: "the fact names a time before the one that the message waits for",
  isNotDismissed: "nobody has dismissed it in this epoch",
  isNotErased: "the body is not erased yet",
  isNewReceipt: "the receipt is new for its epoch"
}

const memory: Record<Action, string> = {
  open: "destination, policy, due time and expiry",
  begin: "the open attempt",
  waitForRetry: "the time of the next attempt",
  waitAsBefore: "the time of the next attempt, and that this one does not count",
  settle: "that no attempt follows",
  succeed: "that no attempt follows, and the provider's name for the message",
  doubt: "when to ask the destination, and how often the attempt was in doubt",
  hurry: "that it is due at that time",
  dismiss: "that nobody is wanted for it",
  reopen: "a new epoch: no attempts, no proof, due at once",
  erase: "that the body is erased",
  remember:
    "the receipt and the provider's name for the message; for this epoch, that an attempt was taken and the first decision"
}

const edge = ({ from, to, fact, guard }: Arrow) =>
  `    ${from} --> ${to} : ${fact}${guard === null ? "" : ` [${guard}]`}`

const asides = new Set(["ReceiptRecorded", "MessageBodyErased", "MessageHurried", "MessageDismissed"])

const end = (place: Place) => `    ${place} --> [*]`

const picture = [
  "```mermaid",
  "stateDiagram-v2",
  "    [*] --> NEW",
  // Some facts change no state: the tables show them.
  ...arrows.filter(({ fact }) => !asides.has(fact)).map(edge),
  ...places.filter((place) => arrows.every(({ from, to }) => from !== place || to === place)).map(end),
  "```"
]

const row = ({ from, to, fact, guard, action }: Arrow) => {
  const cells = [
    `\`${fact}\``,
    guard === null ? "always" : condition[guard],
    to === from ? "stays" : to,
    action === null ? "" : memory[action]
  ]
  return `| ${cells.join(" | ")} |`
}

const chapter = (place: Place) => [
  `## ${place}`,
  "",
  meaning[place],
  "",
  "| fact | condition | leads to | the message remembers |",
  "| --- | --- | --- | --- |",
  ...arrows.filter(({ from }) => from === place).map(row),
  ""
]

/** The rules that the arrows do not show; receipts.test.ts holds every sentence. */
const receipts = [
  "## Receipts",
  "",
  "A provider's receipt may come before the answer to the attempt, late, twice, in any order or never. Every receipt is",
  "stored once, as `ReceiptRecorded`. Its further effects:",
  "",
  "- A receipt is about the epoch in which the provider gave the message the name in the receipt. Without that name it is",
  "  about the epoch in the callback data that Posthaste sent along; without that data about the current epoch, or about",
  "  the one before while the current epoch has no attempt. A receipt about an earlier epoch changes nothing; if it says",
  "  `delivered`, it is shown as a contradiction.",
  "- `sent`, `delivered` and `read` prove that an attempt of this epoch was taken. An attempt in doubt is settled at once.",
  "  An attempt under way counts as taken when its own answer comes, whatever that answer is. A message that waits for",
  "  another attempt does not get one, because the last attempt was taken (`AttemptSucceeded` from QUEUED; the message",
  "  leaves its lane).",
  "- `delivered` and `read` prove delivery. `failed` ends a message that is sent, in doubt or under way, if the receipt is",
  "  about its current attempt. About an attempt that is known to have failed, `failed` changes nothing, and the next",
  "  attempt is made. Where an earlier attempt turns out to be the one that was taken, `failed` about that attempt, by its",
  "  name, ends the message, whichever came first; `failed` about another attempt does not.",
  "- The first receipt that decides (`delivered`, `read` or `failed`) wins. A later receipt that says the opposite is",
  "  stored and shown as a contradiction before a replay. Without `failed`, receipts in any order and number end in the",
  "  same state.",
  "- No receipt revives a message that is FAILED, DEAD_LETTER, CANCELLED or EXPIRED, or takes DELIVERED back.",
  "",
  "## Deferrals",
  "",
  "`AttemptDeferred` says that the destination did not process the message, because of a rate limit or an account that a",
  "person must repair. The attempt does not count: the next `AttemptStarted` has its number, and a deferral never uses up",
  "the last attempt. Time does count: the message expires at its time, and a message that would be too old when it is due",
  "becomes a dead letter at once. An attempt in doubt is never deferred, because it may have been taken; if the destination",
  "defers the question about it, Posthaste asks again later.",
  "",
  "A destination decides how long a message waits five times. After that each deferral lasts a second at least, then two,",
  "four and so on, and in the end a 720th of the message's life: an hour, where its policy names no `ageMaxMs`. So a",
  "message that is put off for ever ends within its life, after some 740 deferrals at most.",
  "",
  "## Receipts that never come",
  "",
  "SENT is no ending, and no time makes it one: nobody knows whether the message arrived, and a receipt may still say so.",
  "Such a message adds no fact and holds nothing up. Retention forgets it after `POSTHASTE_DEAD_LETTER_DAYS`.",
  ""
]

const page = [
  "# The life of a message",
  "",
  "Drawn from the machine in `src/domain/message/machine.ts` by `test/domain/message/lifecycle.test.ts`; not edited by hand.",
  "An arrow is a stored fact, and the name in brackets is its condition. A fact that is not listed cannot follow.",
  "",
  ...picture,
  "",
  ...places.flatMap(chapter),
  ...receipts
].join("\n")

describe("docs/lifecycle.md", () => {
  it("shows the machine as it is", async () => {
    await expect(page).toMatchFileSnapshot("../../../docs/lifecycle.md")
  })

  it("has words for everything the machine uses, and for nothing else", () => {
    const used = <T>(names: ReadonlyArray<T | null>) => [...new Set(names.filter((name) => name !== null))].toSorted()
    expect(used(arrows.map(({ guard }) => guard))).toEqual(Object.keys(condition).toSorted())
    expect(used(arrows.map(({ action }) => action))).toEqual(Object.keys(memory).toSorted())
    expect(used(places)).toEqual(Object.keys(meaning).toSorted())
  })
})

describe("the machine", () => {
  it("has the statuses people see, and the place before the first fact", () => {
    expect(places.toSorted()).toEqual(["NEW", ...statuses].toSorted())
  })

  it("has no state that cannot be reached", () => {
    const reached = new Set<Place>(["NEW"])
    for (let size = 0; size < reached.size; ) {
      size = reached.size
      for (const { from, to } of arrows) if (reached.has(from)) reached.add(to)
    }
    expect([...reached].toSorted()).toEqual(places.toSorted())
  })

  it.each(["ReceiptRecorded", "MessageBodyErased"])("lets %s follow in every state that exists", (kept) => {
    const keeping = arrows.filter(({ fact, from, to }) => fact === kept && from === to)
    expect(keeping.map(({ from }) => from).toSorted()).toEqual([...statuses].toSorted())
  })

  it("needs no running actor and no clock", () => {
    const keys: Array<string> = []
    JSON.stringify(messageMachine.config, (key, value: unknown) => {
      keys.push(key)
      return value
    })
    for (const key of ["invoke", "after", "always", "spawn", "entry", "exit", "delay"]) expect(keys).not.toContain(key)
    expect(messageMachine.implementations.actors).toEqual({})
    expect(messageMachine.implementations.delays).toEqual({})
  })

  it("does nothing on an arrow but remember", () => {
    for (const action of Object.values(messageMachine.implementations.actions)) {
      expect(action).toHaveProperty("type", "xstate.assign")
    }
    const importedBy = (file: string) => {
      const source = readFileSync(join(import.meta.dirname, "../../../src/domain", file), "utf8")
      const [, imported] = /import \{([^}]*)\} from "xstate"/.exec(source)!
      return imported!.split(",").map((name) => name.trim())
    }
    expect(importedBy("message/machine.ts")).toEqual(["setup"])
    expect(importedBy("machine.ts")).toEqual(["assign", "type EventObject"])
  })
})
