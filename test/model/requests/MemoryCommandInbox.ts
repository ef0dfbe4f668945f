import { DateTime, Duration, Effect, Layer } from "effect"
import { COMMANDS_BYTES, CommandInbox, type RefusedCommand } from "../../../src/application/ports/CommandInbox.ts"
import { Memory } from "../Memory.ts"

/** What was visible when commands were taken: every transaction below `next`, but the `open` ones. */
interface Snapshot {
  readonly next: number
  readonly open: ReadonlyArray<number>
}

const PUBLISHED_WITHIN = Duration.days(1)

/** A list of commands with their transactions; those that are committed are here. */
export const layer = Layer.effect(
  CommandInbox,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const { sqlCommands } = tables
    return CommandInbox.of({
      take: (holder, lease, seen, limit) =>
        Effect.sync(() => {
          const at = now()
          const isFree = sqlCommands.until === null || DateTime.isLessThan(sqlCommands.until, at)
          if (sqlCommands.holder !== holder && !isFree) return { seen: null, commands: [] }
          sqlCommands.holder = holder
          sqlCommands.until = DateTime.addDuration(at, lease)
          const before: Snapshot = seen === null ? { next: 0, open: [] } : JSON.parse(seen)
          const snapshot: Snapshot = { next: sqlCommands.nextTx, open: [...sqlCommands.open] }
          const commands = sqlCommands.given
            .filter(({ tx }) => !sqlCommands.open.has(tx) && (tx >= before.next || before.open.includes(tx)))
            .toSorted((a, b) => a.tx - b.tx || Number(a.command.place.n) - Number(b.command.place.n))
            .slice(0, limit)
            .map(({ command }) => command)
          let bytes = 0
          const enough = commands.findIndex(({ request }) => {
            bytes += Buffer.byteLength(request)
            return bytes >= COMMANDS_BYTES
          })
          if (enough >= 0) commands.splice(enough + 1)
          return { seen: JSON.stringify(snapshot), commands }
        }),
      waitingSince: Effect.sync(() => {
        const [first] = sqlCommands.given.filter(({ tx }) => !sqlCommands.open.has(tx)).toSorted((a, b) => a.tx - b.tx)
        return first?.at ?? null
      }),
      settle: (settlements) =>
        Effect.sync(() => {
          for (const { command, problem } of settlements) {
            const index = sqlCommands.given.findIndex(({ command: { id } }) => id === command.id)
            if (index < 0) continue
            sqlCommands.given.splice(index, 1)
            if (problem === null) continue
            const { place: _, traceparent: __, ...kept } = command
            sqlCommands.refused.set(command.id, { ...kept, orgId: kept.orgId, problem, at: now(), published: false })
          }
        }),
      refused: (orgId, id) =>
        Effect.sync(() => {
          const found = sqlCommands.refused.get(id)
          return found === undefined || found.orgId !== orgId ? null : asRefused(found)
        }),
      unpublished: (limit) =>
        Effect.sync(() =>
          [...sqlCommands.refused.values()]
            .filter(
              ({ at, published }) =>
                !published && DateTime.isGreaterThan(at, DateTime.subtractDuration(now(), PUBLISHED_WITHIN))
            )
            .toSorted((a, b) => DateTime.Order(a.at, b.at))
            .slice(0, limit)
            .map(asRefused)
        ),
      markPublished: (ids) =>
        Effect.sync(() => {
          for (const id of ids) {
            const found = sqlCommands.refused.get(id)
            if (found !== undefined) sqlCommands.refused.set(id, { ...found, published: true })
          }
        })
    })
  })
)

const asRefused = ({ published: _, ...refused }: RefusedCommand & { readonly published: boolean }): RefusedCommand =>
  refused
