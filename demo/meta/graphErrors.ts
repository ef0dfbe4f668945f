/** Errors as Meta's Graph API answers them: by code, with the HTTP status and the words Meta documents. */

export interface Refusal {
  readonly status: number
  readonly body: { readonly error: Readonly<Record<string, unknown>> }
}

const documented: Readonly<Record<number, readonly [status: number, title: string, type?: string]>> = {
  0: [401, "We were unable to authenticate the app user."],
  2: [503, "Temporary due to downtime or due to being overloaded."],
  3: [500, "Capability or permissions issue."],
  4: [400, "The app has reached its API call rate limit."],
  10: [403, "Permission is either not granted or has been removed."],
  33: [400, "The business phone number has been deleted."],
  100: [400, "Invalid parameter"],
  190: [401, "Access token has expired"],
  200: [403, "Permission is either not granted or has been removed."],
  368: [403, "Temporarily blocked for policies violations"],
  80007: [400, "The WhatsApp Business Account has reached its rate limit."],
  130429: [400, "Cloud API message throughput has been reached."],
  130472: [400, "User's number is part of an experiment"],
  131000: [500, "Something went wrong"],
  131005: [403, "Access denied"],
  131008: [400, "Required parameter is missing"],
  131009: [400, "Parameter value is not valid"],
  131016: [500, "Service unavailable"],
  131021: [400, "Recipient cannot be sender"],
  131026: [400, "Message undeliverable"],
  131031: [403, "Account has been locked"],
  131042: [400, "Business eligibility payment issue"],
  131045: [500, "Incorrect certificate"],
  131047: [400, "Re-engagement message"],
  131048: [400, "Spam rate limit hit"],
  131049: [400, "Meta chose not to deliver"],
  131050: [400, "User has stopped marketing messages"],
  131051: [400, "Unsupported message type"],
  131052: [400, "Media download error"],
  131053: [400, "Media upload error"],
  131056: [400, "(Business Account, Consumer Account) pair rate limit hit"],
  131057: [500, "Account in maintenance mode"],
  132000: [400, "Template param count mismatch"],
  132001: [404, "Template does not exist"],
  132005: [400, "Template hydrated text too long"],
  132007: [400, "Template format character policy violated"],
  132012: [400, "Template parameter format mismatch"],
  132015: [400, "Template is paused"],
  132016: [400, "Template is disabled"],
  132068: [400, "Flow is blocked"],
  132069: [400, "Flow is throttled"],
  133000: [500, "Incomplete deregistration"],
  133004: [503, "Server temporarily unavailable"],
  133006: [400, "Phone number re-verification needed"],
  133010: [400, "Phone number not registered"],
  135000: [400, "Generic user error"]
}

export const documentedCodes: ReadonlyArray<number> = Object.keys(documented).map(Number)

export interface Extra {
  /** For a code Meta does not document, or to answer with another status than it documents. */
  readonly status?: number
  readonly details?: string
  readonly subcode?: number
  readonly isTransient?: boolean
}

export const refusal = (code: number, { status, details, subcode, isTransient }: Extra = {}): Refusal => {
  const [usual, title] = documented[code] ?? [500, "Unknown error"]
  return {
    status: status ?? usual,
    body: {
      error: {
        message: `(#${code}) ${title}`,
        type: subcode === undefined ? "OAuthException" : "GraphMethodException",
        code,
        ...(subcode === undefined ? {} : { error_subcode: subcode }),
        ...(isTransient === undefined ? {} : { is_transient: isTransient }),
        error_data: { messaging_product: "whatsapp", details: details ?? title },
        fbtrace_id: "AStandInForMetaMadeThis"
      }
    }
  }
}
