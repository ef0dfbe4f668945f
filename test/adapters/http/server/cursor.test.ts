/** Whose cursor is believed: that of the same list and org, in the one spelling it was given out in, also after the keys were rotated. */
import { Effect, Redacted, Result } from "effect"
import { expect, it } from "vitest"
import { ActingOrg } from "../../../../src/adapters/http/server/auth.ts"
import { cursorKeys, cursorsOf } from "../../../../src/adapters/http/server/cursor.ts"
import { OrgId } from "../../../../src/domain/ids.ts"

const keyOf = (fill: number) => Redacted.make(new Uint8Array(32).fill(fill))
const [old, current, other] = [keyOf(1), keyOf(2), keyOf(3)]

const cursors = (keys: ReadonlyArray<Redacted.Redacted<Uint8Array>>, list = "messages", org = "acme") =>
  cursorsOf(list).pipe(
    Effect.provideService(ActingOrg, OrgId.make(org)),
    Effect.provide(cursorKeys(keys)),
    Effect.runSync
  )

type Cursors = ReturnType<typeof cursors>
const openedBy = ({ open }: Cursors, sealed: string) => Result.getOrNull(Effect.runSync(Effect.result(open(sealed))))

it("a cursor leads on at processes before and after a rotation of the keys, and nowhere else", () => {
  const sealed = cursors([old]).seal("42")
  expect(openedBy(cursors([old]), sealed)).toBe("42")
  expect(openedBy(cursors([current, old]), sealed)).toBe("42")
  expect(openedBy(cursors([old]), cursors([old, current]).seal("42"))).toBe("42")
  for (const strange of [
    cursors([current]),
    cursors([current, other]),
    cursors([old], "events"),
    cursors([old], "messages", "other")
  ])
    expect(openedBy(strange, sealed)).toBeNull()
})

it("a cursor has one spelling", () => {
  const own = cursors([old])
  const sealed = own.seal("42")
  const bytes = Buffer.from(sealed, "base64url")
  // Each of these decodes to the same bytes.
  for (const spelling of [`${sealed}=`, `${sealed}.`, ` ${sealed}`, bytes.toString("base64")]) {
    if (spelling === sealed) continue
    expect(Buffer.from(spelling, "base64url").equals(bytes)).toBe(true)
    expect(openedBy(own, spelling)).toBeNull()
  }
  expect(openedBy(own, sealed.slice(0, -1))).toBeNull()
  expect(openedBy(own, "")).toBeNull()
})
