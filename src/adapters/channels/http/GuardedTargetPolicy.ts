/** What an HTTP target may ask for, judged when it is written so that its owner is told at once. */
import { Layer } from "effect"
import { type HttpTargetDraft, HttpTargetPolicy } from "../../../application/ports/HttpTargetPolicy.ts"
import { type AddressGuard, type AddressRules, makeAddressGuard } from "../net/addressGuard.ts"
import { checkUrl, makeCheckHeaders, makeCheckTarget } from "../net/requestPolicy.ts"
import { checkFields } from "./bodyFields.ts"
import { checkReferences, checkSecret } from "./secretHeaders.ts"

export const PLACEHOLDER = "{messageId}"
const SAMPLE_ID = "00000000-0000-7000-8000-000000000000"

/** The key is ours although a target may do without it: a request must not carry another than its message's. */
export const checkHeaders = makeCheckHeaders((name) => name === "idempotency-key" || name === "x-message-id")

/** Why nobody could be asked there about a message; `check` judges the URL for one. */
const checkReconcile = (url: string, check: (url: string) => string | null): string | null => {
  if (!url.includes(PLACEHOLDER)) return `must hold ${PLACEHOLDER} where the message's id belongs`
  const sample = url.replaceAll(PLACEHOLDER, SAMPLE_ID)
  if (URL.parse(sample)?.host.includes(SAMPLE_ID)) return `may hold ${PLACEHOLDER} in its path and query only`
  return check(sample)
}

type Fault = ReturnType<HttpTargetPolicy["Service"]["faultsOf"]>[number]

const faultsOf = (target: HttpTargetDraft, check: (url: string) => string | null): ReadonlyArray<Fault> => {
  const { url, headers, bodyFields, reconcile, secretNames } = target
  const judged = [
    { field: "url", reason: check(url) },
    { field: "headers", reason: checkHeaders(headers) ?? checkReferences(headers, secretNames) },
    { field: "bodyFields", reason: checkFields(bodyFields) ?? checkReferences(bodyFields, secretNames) },
    { field: "reconcile.url", reason: reconcile === null ? null : checkReconcile(reconcile.url, check) }
  ] as const
  return judged.flatMap(({ field, reason }) => (reason === null ? [] : [{ field, reason }]))
}

/** Why the settings can't make a request, whatever the network; null when they can. */
export const checkSettings = (target: HttpTargetDraft): string | null => {
  const fault = faultsOf(target, checkUrl)[0]
  return fault === undefined ? null : `${fault.field}: ${fault.reason}`
}

export const make = (guard: AddressGuard): HttpTargetPolicy["Service"] => {
  const checkTarget = makeCheckTarget(guard)
  return { faultsOf: (target) => faultsOf(target, checkTarget), checkSecret }
}

export const layer = (rules: AddressRules): Layer.Layer<HttpTargetPolicy> =>
  Layer.succeed(HttpTargetPolicy, make(makeAddressGuard(rules)))
