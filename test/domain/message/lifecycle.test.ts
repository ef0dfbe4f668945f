/** docs/lifecycle.md is drawn from the machine. Change the law and this test shows what readers must be told. */
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

/** What a state means to whoever looks at a message. */
const meaning: Record<Place, string> = {
  NEW: "Nothing has been accepted yet; the stream does not exist.",
  QUEUED: "Accepted and waiting in its lane: for its time, for a retry or for its turn.",
  SENDING: "An attempt has been started, and what came of it is not known yet or not written down yet.",
  SENT: "The destination's system has taken it; proof from the recipient may still come.",
  DELIVERED: "Proven at the recipient.",
  FAILED: "Refused for good. It is a dead letter until somebody replays it.",
  DEAD_LETTER:
    "Given up: out of attempts, too old, or of unknown outcome. It is a dead letter until somebody replays it.",
  CANCELLED: "Withdrawn while it waited.",
  EXPIRED: "Its time ran out while it waited."
}

const condition: Record<Guard, string> = {
  isNextAttempt: "it is the next attempt of this epoch and the policy allows one more",
  closesOpenAttempt: "its attempt is open or in doubt",
  isProven: "a receipt of this epoch says that an attempt was taken; it names the last one",
  leavesAnAttempt:
    "its attempt is open, or in doubt and now known to have failed; it names a time to retry, and attempts are left",
  leavesNoAttempt: "its attempt is open, or in doubt and now known to have failed; it names no time to retry",
  isDeferred: "its attempt is open, and not in doubt",
  mayBeDoubted: "its attempt is open or in doubt, and may be asked about once more",
  isSettled: "the last attempt is closed and none follows",
  isByReceipt: "a receipt reported it",
  isNextEpoch: "it opens the epoch after this one, and there is a body: one that was not erased, or another",
  isNotErased: "the body is still there",
  isNewReceipt: "this receipt was not seen for the epoch it is about"
}

const memory: Record<Action, string> = {
  open: "destination, policy, due time and expiry",
  begin: "the open attempt",
  waitForRetry: "when to try again",
  waitAsBefore: "when to try again, and that the attempt does not count",
  settle: "that no attempt follows",
  succeed: "that no attempt follows, and the provider's name for the message",
  doubt: "when to find out, and how often it was doubted",
  reopen: "a fresh epoch: no attempts, nothing proven, due at once",
  erase: "that there is no body",
  remember:
    "the receipt and the provider's name for the message; of this epoch, that it was taken and what it decides first"
}

const edge = ({ from, to, fact, guard }: Arrow) =>
  `    ${from} --> ${to} : ${fact}${guard === null ? "" : ` [${guard}]`}`

const end = (place: Place) => `    ${place} --> [*]`

const picture = [
  "```mermaid",
  "stateDiagram-v2",
  "    [*] --> NEW",
  // A receipt that is only kept and an erased body move nothing and are left to the tables.
  ...arrows.filter(({ fact }) => fact !== "ReceiptRecorded" && fact !== "MessageBodyErased").map(edge),
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
  "| fact | may follow when | leads to | remembers |",
  "| --- | --- | --- | --- |",
  ...arrows.filter(({ from }) => from === place).map(row),
  ""
]

/** What the arrows do not show by themselves; every sentence is a rule of receipts.test.ts. */
const receipts = [
  "## Receipts",
  "",
  "A provider's receipt may come before our own commit, late, twice, in any order or never. It is always kept, once, as",
  "`ReceiptRecorded`. What else it changes:",
  "",
  "- It is about the epoch in which the provider gave the message the name it carries; else about the one that our own",
  "  data that came back with it names; else about this one, or the one before as long as nothing was tried in this one.",
  "  About an earlier epoch it changes nothing: it is kept, and shown as a contradiction where it says `delivered`.",
  "- `sent`, `delivered` and `read` prove that an attempt of this epoch was taken. One in doubt is settled at once. One",
  "  under way is settled as taken when its own answer comes, whatever that is. A message that waits for another attempt",
  "  does not get it: the last one had been taken after all (`AttemptSucceeded` from QUEUED, and the message leaves its",
  "  lane).",
  "- `delivered` and `read` prove delivery. `failed` ends a message that is sent, in doubt or under way if it is about that",
  "  very attempt. About one that is known to have failed it says nothing new, and the next attempt is made. Where an",
  "  earlier try turns out to be the one that was taken, `failed` about that one, by its name, ends the message, whichever",
  "  came first; about any other it does not.",
  "- The first receipt that decides (`delivered`, `read` or `failed`) wins. A later one that says the opposite is kept, and",
  "  shown as a contradiction to whoever could replay. Without `failed`, any order and number end in the same state.",
  "- No receipt revives a message that is FAILED, DEAD_LETTER, CANCELLED or EXPIRED, or takes DELIVERED back.",
  "",
  "## Deferrals",
  "",
  "`AttemptDeferred` says that the far side did not try the message: a rate limit, an account that must be put right. The",
  "attempt does not count: the next `AttemptStarted` has its number, and the last attempt is never lost to a deferral. Time",
  "does count: a message expires when it would, and one that would be too old when it is due ends as a dead letter at once.",
  "An attempt in doubt is never deferred, for it may have been taken; who is put off when asking about it asks again later.",
  ""
]

const page = [
  "# The life of a message",
  "",
  "Drawn from the machine in `src/domain/message/machine.ts` by `test/domain/message/lifecycle.test.ts`; not edited by hand.",
  "Arrows are stored facts, in brackets what must hold for one to follow. Whatever is not listed cannot happen.",
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
    const source = readFileSync(join(import.meta.dirname, "../../../src/domain/message/machine.ts"), "utf8")
    const [, imported] = /import \{([^}]*)\} from "xstate"/.exec(source)!
    expect(imported!.split(",").map((name) => name.trim())).toEqual(["assign", "setup"])
  })
})
