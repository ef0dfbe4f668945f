import { Schema } from "effect"

export const DeliveryError = Schema.Struct({
  code: Schema.NonEmptyString,
  message: Schema.String,
  retryable: Schema.Boolean
})
export type DeliveryError = typeof DeliveryError.Type
