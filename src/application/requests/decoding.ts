/** Decodes what a request holds, strictly: every field that is wrong, missing or not known is named, with the reason. */
import { Result, Schema, SchemaAST, SchemaIssue } from "effect"
import type { Fault } from "../errors.ts"

const strictly = { errors: "all", onExcessProperty: "error" } as const

/** `path` stands before every field's name: the place of the decoded value in the request. */
export type Decode<A> = (value: unknown, path?: string) => Result.Result<A, ReadonlyArray<Fault>>

export const decoderOf = <A>(schema: Schema.ConstraintDecoder<A>): Decode<A> => {
  const decode = Schema.decodeUnknownResult(schema, strictly)
  return (value, path = "") => Result.mapError(decode(value), (error) => faultsOf(error.issue, path))
}

const describe = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => {
    switch (issue._tag) {
      case "MissingKey":
        return "is required"
      case "UnexpectedKey":
        return "is not a field of this request"
      case "InvalidType":
        // The names of our schemas mean nothing to a caller.
        return SchemaAST.isObjects(issue.ast) ? "must be an object" : sentence(SchemaIssue.defaultLeafHook(issue))
      default:
        return sentence(SchemaIssue.defaultLeafHook(issue))
    }
  },
  checkHook: (issue) => {
    const message = SchemaIssue.defaultCheckHook(issue)
    return message === undefined ? undefined : sentence(message)
  }
})

const sentence = (message: string) =>
  message.replace(/^Expected (?=(array|object))/, "must be an ").replace(/^Expected /, "must be ")

export const faultsOf = (issue: SchemaIssue.Issue, path: string): ReadonlyArray<Fault> =>
  describe(issue).issues.map(({ path: inner, message }) => ({
    field: fieldName(path, inner ?? []) || "body",
    reason: sentence(message)
  }))

type Segment = PropertyKey | { readonly key: PropertyKey }

const fieldName = (path: string, segments: ReadonlyArray<Segment>): string =>
  segments.reduce<string>((name, segment) => {
    const key = typeof segment === "object" ? segment.key : segment
    if (typeof key === "number") return `${name}[${key}]`
    return name === "" ? String(key) : `${name}.${String(key)}`
  }, path)
