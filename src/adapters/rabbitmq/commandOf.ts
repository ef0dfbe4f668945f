/** Decodes a delivery as a command, or tells the problem in the words of the HTTP API. */
import { Result, Schema } from "effect"
import { OrgId } from "../../domain/ids.ts"
import { type Command, commandTypes, isCommandType } from "../api/commands.ts"
import { isJson, jsonOf, SIZE_MAX, textOf } from "../api/jsonText.ts"
import { IdempotencyKey, keyRule } from "../api/messageRequests.ts"
import { invalidFields, type Problem, tooLarge, unsupportedMediaType } from "../api/problem.ts"
import type { Delivery } from "./deliveries.ts"

export const ORG_HEADER = "x-org-id"

const isOrgId = Schema.is(OrgId)
const isKey = Schema.is(IdempotencyKey)
/** Some clients put the charset here. */
const isPlain = (encoding: string | undefined) => encoding === undefined || /^(identity|utf-?8)?$/i.test(encoding)

export const commandOf = (delivery: Delivery): Result.Result<Command, Problem> => {
  const { type = "", contentType, contentEncoding, messageId = "", headers, body } = delivery
  if (body.length > SIZE_MAX) return Result.fail(tooLarge(SIZE_MAX))
  if (contentType !== undefined && contentType !== "" && !isJson(contentType)) {
    return Result.fail(unsupportedMediaType("Send the body with the content type application/json."))
  }
  if (!isPlain(contentEncoding)) return Result.fail(unsupportedMediaType("Send the body without content-encoding."))
  const orgId: unknown = headers?.[ORG_HEADER]
  const faults = [
    ...(isCommandType(type) ? [] : [{ field: "type", reason: `must be one of ${commandTypes.join(", ")}` }]),
    ...(isOrgId(orgId)
      ? []
      : [
          {
            field: ORG_HEADER,
            reason: orgId == null ? "is required" : "must be 1 to 64 letters, digits, dots, dashes or underscores"
          }
        ]),
    // Without a key a redelivery could not be told from another command.
    ...(isKey(messageId)
      ? []
      : [
          {
            field: "messageId",
            reason: messageId === "" ? "is required: it is the idempotency key" : keyRule
          }
        ])
  ]
  if (faults.length > 0 || !isCommandType(type) || !isOrgId(orgId)) return Result.fail(invalidFields(faults))
  return Result.flatMap(textOf(body), jsonOf).pipe(
    Result.map((json): Command => {
      const traceparent: unknown = headers?.["traceparent"]
      return { type, orgId, key: messageId, json, ...(typeof traceparent === "string" && { traceparent }) }
    })
  )
}
