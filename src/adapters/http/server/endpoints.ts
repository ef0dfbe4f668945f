/** The API without its resources, and the words and scope of an endpoint. */
import { Context } from "effect"
import { HttpApi, OpenApi } from "effect/http-api"
import type { Scope } from "../../../application/ports/scopes.ts"
import { idParam } from "./fields.ts"
import { problemOf } from "./problem.ts"

/** Refuses unknown parameters: a misspelt filter would list everything. */
export const base = HttpApi.make("posthaste")
  .annotate(HttpApi.QueryParseOptions, { errors: "all", onExcessProperty: "error" })
  .annotate(HttpApi.HeadersParseOptions, { errors: "all" })

/** The scope that an endpoint needs; `admin` without one. */
export class NeededScope extends Context.Service<NeededScope, Scope>()("posthaste/adapters/http/server/NeededScope") {}

/**
 * True where the operator's `X-Org-Id: *` asks for the lists of all orgs; for the audit, for entries of no org. It is
 * no name of an org, so all are never asked for by mistake.
 */
export class OfAllOrgs extends Context.Service<OfAllOrgs, true>()("posthaste/adapters/http/server/OfAllOrgs") {}

export const ofAllOrgs = Context.make(OfAllOrgs, true)

const SUMMARY_MAX = 80

const summaryOf = (text: string): string => {
  const sentence = text.replace(/\.$/, "").split(". ")[0]!
  if (sentence.length <= SUMMARY_MAX) return sentence
  const pauses = [...sentence.matchAll(/[:;,] /g)].map(({ index }) => index).filter((index) => index <= SUMMARY_MAX)
  return pauses.length === 0 ? sentence : sentence.slice(0, pauses.at(-1))
}

/** The words of a group of endpoints. */
export const titled = (title: string, description: string) => OpenApi.annotations({ title, description })

/** The words of an endpoint without a scope: the operator's, or open to all. */
export const words = (description: string) => OpenApi.annotations({ summary: summaryOf(description), description })

export const about = (scope: Scope, description: string) => Context.add(words(description), NeededScope, scope)

export const byId = { params: idParam, error: problemOf(404) }

export const bodyErrors = [problemOf(413), problemOf(415)]
