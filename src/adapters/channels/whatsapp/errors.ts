/**
 * Meaning of Meta's error codes: its HTTP statuses are ambiguous, its texts change and may repeat the message, so facts
 * hold Posthaste's words. Operators can override codes (`parseCodes`).
 */
import { Result } from "effect"
import type { DeliveryError } from "../../../domain/delivery/DeliveryError.ts"

export const codeClasses = ["throttle", "pair", "temporary", "wait", "permanent", "account", "standing"] as const
/**
 * - `throttle`: number, account or app sends too fast; its messages wait a little
 * - `pair`: too much to one recipient; this message waits
 * - `temporary`: the retry policy applies
 * - `wait`: not before tomorrow
 * - `account`: the account can't send until a person repairs it
 * - `standing`: the number's quality is too bad; like `account`, for a day
 */
export type CodeClass = (typeof codeClasses)[number]

export type CodeOverrides = ReadonlyMap<number, CodeClass>

const meanings: Record<CodeClass, Readonly<Record<number, string>>> = {
  throttle: {
    4: "the app has made too many calls",
    80007: "the WhatsApp Business Account has reached its rate limit",
    130429: "the phone number has reached its throughput"
  },
  pair: { 131056: "too many messages from this number to this recipient in a short time" },
  temporary: {
    2: "the service is temporarily unavailable",
    131000: "something went wrong at Meta",
    131016: "a service of Meta's is temporarily unavailable",
    131057: "the account is in maintenance, such as a throughput upgrade",
    133004: "the server is temporarily unavailable"
  },
  wait: { 131049: "not delivered, to keep the recipient from too many marketing messages" },
  permanent: {
    100: "a parameter is not supported or misspelt",
    130472: "the recipient's number is part of an experiment of Meta's",
    131008: "a required parameter is missing",
    131009: "the value of a parameter is not valid",
    131021: "the recipient is the sender",
    131026: "the recipient can't receive the message",
    131047: "more than 24 hours since the recipient's last message: only a template can be sent",
    131050: "the recipient has stopped marketing messages from this sender",
    131051: "the type of the message is not supported",
    131052: "the media could not be downloaded",
    131053: "the media could not be uploaded",
    132000: "the number of parameters is not the template's",
    132001: "the template does not exist in this language, or was not approved",
    132005: "the filled-in template is too long",
    132007: "the template's content violates a policy",
    132012: "the format of a parameter is not the template's",
    132015: "the template is paused for low quality",
    132016: "the template is disabled for low quality",
    132068: "the template's flow is blocked",
    132069: "the template's flow is throttled",
    135000: "the message could not be sent for a reason Meta does not tell"
  },
  account: {
    0: "the access token could not be checked",
    3: "the app lacks a capability or permission",
    10: "the permission was not granted or was removed",
    33: "the phone number was deleted or is not within the app's reach",
    190: "the access token has expired or was revoked",
    368: "the account is blocked for a violation of policy",
    131005: "access was denied",
    131031: "the account was locked",
    131042: "the account's payment method has a problem",
    131045: "the phone number's registration has a certificate problem",
    133000: "the phone number was not fully deregistered before",
    133006: "the phone number must be verified again",
    133010: "the phone number is not registered"
  },
  standing: { 131048: "too many earlier messages from this number were blocked or flagged as spam" }
}

interface Meaning {
  readonly class: CodeClass
  readonly words: string
}

const table: ReadonlyMap<number, Meaning> = new Map(
  codeClasses.flatMap((name) =>
    Object.entries(meanings[name]).map(([code, words]) => [Number(code), { class: name, words }] as const)
  )
)

export interface GraphError {
  readonly code: number
  readonly subcode: number | null
  readonly isTransient: boolean
}

interface Verdict extends Meaning {
  /** False: the class comes from the HTTP status alone. */
  readonly isKnown: boolean
}

export const verdictOf = (error: GraphError, status: number, overrides: CodeOverrides): Verdict => {
  const meaning = meaningOf(error)
  const override = overrides.get(error.code)
  if (override !== undefined) return { class: override, words: meaning?.words ?? "an error", isKnown: true }
  if (meaning !== null) return { ...meaning, isKnown: true }
  return { class: error.isTransient ? "temporary" : classOfStatus(status), words: "an error", isKnown: false }
}

export const deliveryErrorOf = (code: number, verdict: Verdict): DeliveryError => ({
  code: `whatsapp_${code}`,
  message: `Meta's error ${code}: ${verdict.words}`,
  retryable: verdict.class !== "permanent"
})

/** Subcode of 100: the token can't see the phone number in the URL. */
const NO_SUCH_OBJECT = 33

const meaningOf = ({ code, subcode }: GraphError): Meaning | null => {
  if (code === 100 && subcode === NO_SUCH_OBJECT) return table.get(NO_SUCH_OBJECT)!
  if (code >= 200 && code <= 299) return { class: "account", words: "a permission is missing or was removed" }
  return table.get(code) ?? null
}

export const classOfStatus = (status: number): CodeClass => {
  if (status === 401 || status === 403) return "account"
  if (status === 429) return "throttle"
  return status >= 400 && status < 500 && status !== 408 ? "permanent" : "temporary"
}

/** Reads `131026=permanent,131047=temporary`; an error names the wrong entry. */
export const parseCodes = (text: string): Result.Result<CodeOverrides, string> => {
  const codes = new Map<number, CodeClass>()
  for (const entry of text.split(",").map((part) => part.trim())) {
    if (entry === "") continue
    const [, code, name] = /^(\d{1,9})\s*=\s*(\w+)$/.exec(entry) ?? []
    if (code === undefined) return Result.fail(`holds "${entry}"; an entry looks like 131026=permanent`)
    const found = codeClasses.find((known) => known === name)
    if (found === undefined) return Result.fail(`knows the classes ${codeClasses.join(", ")}, not "${name}"`)
    if (codes.has(Number(code))) return Result.fail(`names the code ${code} twice`)
    codes.set(Number(code), found)
  }
  return Result.succeed(codes)
}
