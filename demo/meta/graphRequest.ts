/**
 * Judges a request to `/messages`, or a question about a number, as Meta documents it: who may ask, what a body must hold. Written from Meta's
 * documentation and not from what Posthaste sends, so that the two can disagree.
 */
import { type Extra, type Refusal, refusal } from "./graphErrors.ts"

/** A phone number that is set up at the stand-in. */
export interface Sender {
  readonly phoneNumberId: string
  readonly accessToken: string
  /** Digits. */
  readonly displayPhoneNumber: string
}

export interface Template {
  readonly name: string
  readonly language: string
  /** How many parameters its body takes. */
  readonly parameters: number
}

export interface GraphRequest {
  readonly method: string
  readonly path: string
  readonly authorization: string | null
  readonly contentType: string | null
  readonly body: string
}

export interface Taken {
  readonly sender: Sender
  readonly version: string
  readonly to: string
  readonly type: "text" | "template"
  /** The request's `text` or `template`. */
  readonly content: Members
  readonly callbackData: string | null
}

type Members = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const isRefusal = (judged: Taken | Refusal): judged is Refusal => "status" in judged

const missing = (parameter: string) => refusal(100, { details: `The parameter ${parameter} is required.` })
const wrong = (details: string, extra: Extra = {}) => refusal(131009, { details, ...extra })

export const judge = (
  request: GraphRequest,
  senders: ReadonlyMap<string, Sender>,
  templates: ReadonlyArray<Template>
): Taken | Refusal => {
  const [, version, phoneNumberId = ""] = /^\/(v\d+\.\d+)\/(\d+)\/messages$/.exec(request.path) ?? []
  if (request.method !== "POST" || version === undefined) {
    return refusal(2500, { status: 400, details: "Unknown path components" })
  }
  const token = /^Bearer (\S+)$/.exec(request.authorization ?? "")?.[1]
  if (![...senders.values()].some(({ accessToken }) => accessToken === token)) return refusal(190)
  const sender = senders.get(phoneNumberId)
  if (sender?.accessToken !== token) {
    return refusal(100, { subcode: 33, details: `Object with ID '${phoneNumberId}' does not exist` })
  }
  const body = request.contentType?.startsWith("application/json") ? parsed(request.body) : null
  if (!isObject(body)) return refusal(100, { details: "The body is not a JSON object" })
  return judgeBody(body, sender!, version, templates)
}

/** What is said about a number to whoever asks with its token. */
export const judgeQuestion = (
  path: string,
  authorization: string | null,
  senders: ReadonlyMap<string, Sender>
): { readonly status: number; readonly body: object } => {
  const [, phoneNumberId = ""] = /^\/v\d+\.\d+\/(\d+)(?:\?fields=id)?$/.exec(path) ?? []
  const token = /^Bearer (\S+)$/.exec(authorization ?? "")?.[1]
  if (![...senders.values()].some(({ accessToken }) => accessToken === token)) return refusal(190)
  const sender = senders.get(phoneNumberId)
  return sender !== undefined && sender.accessToken === token
    ? { status: 200, body: { id: phoneNumberId, display_phone_number: sender.displayPhoneNumber } }
    : refusal(100, { subcode: 33, details: `Object with ID '${phoneNumberId}' does not exist` })
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const known = new Set([
  ...["messaging_product", "recipient_type", "to", "type", "text", "template", "context"],
  "biz_opaque_callback_data"
])

const judgeBody = (
  body: Members,
  sender: Sender,
  version: string,
  templates: ReadonlyArray<Template>
): Taken | Refusal => {
  const stranger = Object.keys(body).find((name) => !known.has(name))
  if (stranger !== undefined) return refusal(100, { details: `Unexpected key "${stranger}" on param.` })
  const { messaging_product: product, recipient_type: kind = "individual", to, type = "text" } = body
  const { biz_opaque_callback_data: data = null } = body
  if (product !== "whatsapp") return missing("messaging_product")
  if (kind !== "individual") return wrong("recipient_type must be individual")
  if (to === undefined) return missing("to")
  if (typeof to !== "string" || !/^\+?[1-9]\d{6,14}$/.test(to)) return wrong("to must be a phone number")
  if (to.replace("+", "") === sender.displayPhoneNumber) return refusal(131021)
  if (data !== null && (typeof data !== "string" || data.length > 512)) {
    return wrong("biz_opaque_callback_data must be a text of at most 512 characters")
  }
  if (type !== "text" && type !== "template") return refusal(131051)
  const content = body[type]
  if (!isObject(content)) return missing(type)
  const fault = type === "text" ? faultOfText(content) : faultOfTemplate(content, templates)
  return fault ?? { sender, version, to: to.replace("+", ""), type, content, callbackData: data }
}

const faultOfText = ({ body, preview_url: preview = false }: Members): Refusal | null => {
  if (typeof body !== "string" || body === "") return missing("text['body']")
  if (body.length > 4096) return refusal(100, { details: "Param text['body'] must be at most 4096 characters long." })
  return typeof preview === "boolean" ? null : wrong("preview_url must be a boolean")
}

const componentTypes = new Set(["header", "body", "button", "carousel", "limited_time_offer", "order_status"])

const faultOfTemplate = (
  { name, language, components = [] }: Members,
  templates: ReadonlyArray<Template>
): Refusal | null => {
  if (typeof name !== "string") return refusal(131008, { details: "template['name']" })
  if (!isObject(language) || typeof language["code"] !== "string") {
    return refusal(131008, { details: "template['language']['code']" })
  }
  const template = templates.find((one) => one.name === name && one.language === language["code"])
  if (template === undefined) {
    return refusal(132001, { details: `template name (${name}) does not exist in ${language["code"]}` })
  }
  if (!Array.isArray(components)) return wrong("template['components'] must be an array")
  let parameters = 0
  for (const component of components) {
    if (!isObject(component) || !componentTypes.has(String(component["type"]).toLowerCase())) {
      return wrong("a component must have a known type")
    }
    const given = component["parameters"] ?? []
    if (!Array.isArray(given) || !given.every((one) => isObject(one) && typeof one["type"] === "string")) {
      return refusal(132012)
    }
    if (component["type"] === "body") parameters += given.length
  }
  return parameters === template.parameters
    ? null
    : refusal(132000, {
        details: `body: number of localizable_params (${parameters}) does not match the expected number of params (${template.parameters})`
      })
}
