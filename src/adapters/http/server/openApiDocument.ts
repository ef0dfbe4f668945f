/**
 * Corrects the OpenAPI document that is generated from Api.ts: one `Problem` schema instead of one per status, and a
 * page limit that is a number.
 */
import { LIMIT_DEFAULT, LIMIT_MAX } from "./fields.ts"

interface Parameter {
  readonly name: string
  schema: object
}

// The generator passes its document as an untyped record.
type Document = Record<string, unknown> & {
  readonly paths: Record<string, Record<string, { readonly parameters?: ReadonlyArray<Parameter> }>>
  readonly components: { readonly schemas: Record<string, unknown> }
}

const copyOfProblem = /^Problem_\d+$/

export const finish = (generated: Record<string, unknown>): Record<string, unknown> => {
  const text = JSON.stringify(generated).replace(/(#\/components\/schemas\/Problem)_\d+"/g, '$1"')
  const document = JSON.parse(text) as Document
  for (const name of Object.keys(document.components.schemas)) {
    if (copyOfProblem.test(name)) delete document.components.schemas[name]
  }
  for (const parameter of Object.values(document.paths)
    .flatMap((path) => Object.values(path))
    .flatMap((operation) => operation.parameters ?? [])) {
    if (parameter.name === "limit") {
      parameter.schema = { type: "integer", minimum: 1, maximum: LIMIT_MAX, default: LIMIT_DEFAULT }
    }
  }
  return document
}
