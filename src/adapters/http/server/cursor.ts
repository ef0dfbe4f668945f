/** The cursors of lists: the store's own, signed, so that only cursors it gave out for this list and org reach it. */
import { createHmac, timingSafeEqual } from "node:crypto"
import { Context, Effect, Layer, Redacted } from "effect"
import { ActingOrg } from "./auth.ts"
import { invalidRequest, type Problem } from "./problem.ts"

/** Signs with the first key and believes each, as a rotation needs. */
class CursorKeys extends Context.Service<CursorKeys, ReadonlyArray<Buffer>>()(
  "posthaste/adapters/http/server/cursor/CursorKeys"
) {}

/** All processes share these keys, so a cursor is good at any of them. */
export const cursorKeys = (encryptionKeys: ReadonlyArray<Redacted.Redacted<Uint8Array>>) =>
  Layer.succeed(
    CursorKeys,
    encryptionKeys.map((key) => createHmac("sha256", Redacted.value(key)).update("posthaste cursors").digest())
  )

const SIGNATURE_BYTES = 16

const signature = (key: Buffer, orgId: string, list: string, cursor: string) =>
  createHmac("sha256", key)
    .update(JSON.stringify([orgId, list, cursor]))
    .digest()
    .subarray(0, SIGNATURE_BYTES)

/** Seals and opens the cursors of one list, for the org that asks. */
export const cursorsOf = (list: string) =>
  Effect.gen(function* () {
    const keys = yield* CursorKeys
    const orgId = yield* ActingOrg
    return {
      seal: (cursor: string): string =>
        Buffer.concat([signature(keys[0]!, orgId, list, cursor), Buffer.from(cursor)]).toString("base64url"),
      open: (sealed: string, field = "cursor"): Effect.Effect<string, Problem> => {
        const bytes = Buffer.from(sealed, "base64url")
        const cursor = bytes.toString("utf8", SIGNATURE_BYTES)
        const signed = bytes.subarray(0, SIGNATURE_BYTES)
        const isOurs =
          signed.length === SIGNATURE_BYTES &&
          // Base64 has several spellings of one text; one is accepted.
          bytes.toString("base64url") === sealed &&
          keys.some((key) => timingSafeEqual(signed, signature(key, orgId, list, cursor)))
        return isOurs
          ? Effect.succeed(cursor)
          : Effect.fail(
              invalidRequest(`The ${field} is not one this list gave out.`, [{ field, reason: "is not valid" }])
            )
      }
    }
  })
