/**
 * Who judges the judge? The simulation must notice each of these broken stores within a few worlds, or it would not
 * notice a real bug. How many it may take stands beside each: a number that has to grow says that the worlds have
 * become blind to something.
 */
import { describe, expect, it } from "vitest"
import { mutants, repairMutants } from "./mutants.ts"
import { type Sabotage, World } from "./world.ts"

const worldsMax: Record<keyof typeof mutants, number> = {
  "ignores the fence": 100,
  "ignores the gate of a circuit": 100,
  "ignores the expected version": 10,
  "forgets idempotency keys": 5,
  "reads the numbers of a body": 5,
  "makes retries due at once": 20,
  "loses the queue change of an append": 5,
  "answers an append before it is safe, and loses some": 20,
  "writes the start of an attempt a moment after it said so": 5,
  "hands some messages out twice": 50,
  "takes leases over that still live": 20,
  "keeps the old claim when a batch is taken over": 20,
  "forgets what a release puts back": 20,
  "skips a fact in the feed": 200,
  "moves the projection on without its rows": 5,
  "takes a batch over under its old name": 400,
  "renews whatever a living worker was ever given": 100,
  "answers that messages are back before that is on the disk": 1_400,
  "gives the name of a batch again": 200,
  "forgets what is put back": 150,
  "forgets that a lane was deferred": 100,
  "counts nothing against a rate limit": 300,
  "gives a probe a permit that never ends": 600,
  "lets a second probe through": 100,
  "hands out what is held": 50,
  "goes on although it is paused": 50,
  "hands out the second of a line beside the first": 20,
  "sends a retry to the end of its line": 3_000,
  "lets a dead letter step aside although it blocks": 100,
  "keeps a line blocked although its dead letter was replayed": 3_000,
  "puts off again and again for as short as it is asked": 200,
  "puts off longer each time, but never longer than three seconds": 300,
  "gives up what was sent when no receipt comes": 30,
  "counts an attempt that was put off": 20,
  "sends again what is in doubt": 200,
  "revives a dead letter when a receipt says that it was delivered": 200,
  "answers that a stream is parked before that is on the disk": 1_200,
  "never brings back what was parked": 200,
  "brings back what was parked twice": 400,
  "brings back what was parked without a look at its facts": 400,
  "brings back only what waits": 800,
  "un-parks what a batch holds": 800,
  "parks nothing": 200,
  "keeps the body of what was erased": 20,
  "forgets that a body was erased": 20,
  "replays what is dead by now, not what was dead when it was asked": 500,
  "finds for a replay what died after it was asked for": 3_000,
  "sets down a replay twice under one key": 20,
  "closes a replay with its first stretch": 300,
  "names no replay in what it replays": 50
}

/** Worlds left out because nothing is noticed in them, of mutants that show in one world of a thousand. */
const worldsBefore: { readonly [name: string]: number } = {
  "puts off again and again for as short as it is asked": 300,
  "puts off longer each time, but never longer than three seconds": 300
}

/** What only repairs can show is looked for where there are some. */
const isNoticed = (seed: number, sabotage: Sabotage): boolean => {
  const world = new World(seed, sabotage)
  if (repairMutants.has(sabotage) && world.troubles.length === 0) return false
  return world.run().violation !== null
}

describe("the simulation notices a store that", () => {
  for (const [name, sabotage] of Object.entries(mutants)) {
    it(name, () => {
      const before = worldsBefore[name] ?? 0
      const most = before + worldsMax[name as keyof typeof mutants]
      let seed = before + 1
      while (seed <= most && !isNoticed(seed, sabotage)) seed += 1
      expect(seed).toBeLessThanOrEqual(most)
      // The same world with a store that keeps its promises is fine: it is the sabotage that was noticed.
      expect(new World(seed).run().violation).toBeNull()
    })
  }
})
