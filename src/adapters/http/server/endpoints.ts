/** The parts that the resources of the API have in common: the API without them, and the words of an endpoint. */
import { Context } from "effect"
import { HttpApi, OpenApi } from "effect/http-api"
import type { Scope } from "../../../application/keys/scopes.ts"
import { idParam } from "./fields.ts"
import { problemOf } from "./problem.ts"

/** The API without its resources. Unknown parameters are refused: a misspelt filter would otherwise list everything. */
export const base = HttpApi.make("posthaste")
  .annotate(HttpApi.QueryParseOptions, { errors: "all", onExcessProperty: "error" })
  .annotate(HttpApi.HeadersParseOptions, { errors: "all" })

/** The scope that a key needs for an endpoint. One without needs `admin`. */
export class NeededScope extends Context.Service<NeededScope, Scope>()("posthaste/adapters/http/server/NeededScope") {}

/**
 * True of the endpoints where the operator's `X-Org-Id: *` asks for the lists of all orgs; of the audit, for the entries of no org. It
 * is no name of an org, so nobody asks for all of them by mistake.
 */
export class OfAllOrgs extends Context.Service<OfAllOrgs, true>()("posthaste/adapters/http/server/OfAllOrgs") {}

export const ofAllOrgs = Context.make(OfAllOrgs, true)

const SUMMARY_MAX = 80

/** The first sentence, cut at a pause when it is long. */
const summaryOf = (text: string): string => {
  const sentence = text.replace(/\.$/, "").split(". ")[0]!
  if (sentence.length <= SUMMARY_MAX) return sentence
  const pauses = [...sentence.matchAll(/[:;,] /g)].map(({ index }) => index).filter((index) => index <= SUMMARY_MAX)
  return pauses.length === 0 ? sentence : sentence.slice(0, pauses.at(-1))
}

/** The words of an endpoint that needs no scope of a key: it is the operator's, or anybody may call it. */
export const words = (description: string) => OpenApi.annotations({ summary: summaryOf(description), description })

/** The scope that an endpoint needs, and its words. */
export const about = (scope: Scope, description: string) => Context.add(words(description), NeededScope, scope)

/** Of an endpoint about one thing, which may not be there. */
export const byId = { params: idParam, error: problemOf(404) }

/** The refusals of an endpoint that takes a body. */
export const bodyErrors = [problemOf(413), problemOf(415)]
