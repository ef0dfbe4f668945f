/**
 * The content of a WhatsApp message: a template by `templateCode` and a payload of `{language, components?}`, or,
 * within a day of the recipient's last message, a text by a payload of `{text}`. It is read at acceptance, to refuse
 * mistakes at once, and again when it is sent. Only Meta knows whether the template exists and takes these components.
 */
import { Result } from "effect"

export type Content =
  | {
      readonly type: "template"
      readonly name: string
      /** In Meta's form: `{code}`, and every other field of the caller. */
      readonly language: { readonly code: string }
      /** To be written as JSON and not read: their numbers are texts. */
      readonly components: ReadonlyArray<unknown> | null
    }
  | { readonly type: "text"; readonly body: string; readonly previewUrl: boolean | null }

export interface Payload {
  readonly content: Content
  readonly from: string | null
}

export interface PayloadFault {
  readonly field: string
  readonly reason: string
}

export const TEXT_MAX = 4096

type Members = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const readPayload = (
  templateCode: string | null,
  body: string
): Result.Result<Payload, ReadonlyArray<PayloadFault>> => {
  const json = parsed(body)
  if (!isObject(json)) return Result.fail([{ field: "payloadJson", reason: "must be an object" }])
  const faults: Array<PayloadFault> = []
  const addFault = (field: string, reason: string) => {
    faults.push({ field, reason })
    return null
  }
  const from = json["from"] == null ? null : fromOf(json["from"], addFault)
  const content =
    templateCode === null
      ? textOf(json, addFault)
      : json["text"] == null
        ? templateOf(templateCode, json, body, addFault)
        : null
  if (templateCode !== null && json["text"] != null) {
    addFault("payloadJson.text", "must be absent beside a templateCode: a message is a template or a text")
  }
  return content === null || faults.length > 0 ? Result.fail(faults) : Result.succeed({ content, from })
}

type AddFault = (field: string, reason: string) => null

const fromOf = (from: unknown, addFault: AddFault): string | null =>
  typeof from === "string" && /^[\w-]{1,64}$/.test(from)
    ? from
    : addFault("payloadJson.from", "must be the id of a WhatsApp account, or its phoneNumberId")

const refuseOthers = (json: Members, path: string, known: ReadonlyArray<string>, addFault: AddFault): void => {
  for (const name of Object.keys(json)) {
    if (!known.includes(name)) addFault(`${path}.${name}`, "is not a field of this message")
  }
}

const textOf = (json: Members, addFault: AddFault): Content | null => {
  const { text } = json
  if (text == null) return addFault("payloadJson", "must hold a text, or the message a templateCode")
  refuseOthers(json, "payloadJson", ["from", "text"], addFault)
  if (typeof text === "string") return textContent("payloadJson.text", text, null, addFault)
  if (!isObject(text)) return addFault("payloadJson.text", "must be a text, or an object with the text as its body")
  refuseOthers(text, "payloadJson.text", ["body", "preview_url"], addFault)
  const { body, preview_url: preview = null } = text
  if (preview !== null && typeof preview !== "boolean")
    addFault("payloadJson.text.preview_url", "must be true or false")
  return textContent("payloadJson.text.body", body, preview === true, addFault)
}

const textContent = (field: string, body: unknown, previewUrl: boolean | null, addFault: AddFault): Content | null =>
  typeof body === "string" && body.trim() !== "" && lengthOf(body) <= TEXT_MAX
    ? { type: "text", body, previewUrl }
    : addFault(field, `must be a text of 1 to ${TEXT_MAX} characters`)

const lengthOf = (text: string): number => (text.length <= TEXT_MAX ? text.length : [...text].length)

const templateOf = (name: string, json: Members, body: string, addFault: AddFault): Content | null => {
  refuseOthers(json, "payloadJson", ["from", "language", "components"], addFault)
  const language = languageOf(json["language"], addFault)
  const given = json["components"] ?? null
  if (given !== null && !Array.isArray(given)) return addFault("payloadJson.components", "must be an array")
  const components = given === null ? null : JSON.parse(body, asWritten).components
  return language === null ? null : { type: "template", name, language, components }
}

const code = /^[A-Za-z]{2,3}([_-][A-Za-z0-9]{2,8})*$/

const languageOf = (language: unknown, addFault: AddFault): { readonly code: string } | null => {
  const given = isObject(language) ? language : { code: language }
  if (typeof given["code"] === "string" && code.test(given["code"])) return { ...given, code: given["code"] }
  return language == null
    ? addFault("payloadJson.language", 'is required with a templateCode, such as "en_US"')
    : addFault("payloadJson.language", 'must be a language code such as "en_US", or an object with such a code')
}

/** Undefined when it is not JSON, which only a body in another form can be. */
const parsed = (text: string): unknown =>
  Result.getOrElse(
    Result.try((): unknown => JSON.parse(text)),
    () => undefined
  )

/** A number as its original text, which `JSON.stringify` then writes digit by digit. */
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown }

const asWritten = (_: string, value: unknown, { source }: { readonly source?: string } = {}): unknown =>
  typeof value === "number" && source !== undefined ? rawJSON(source) : value
