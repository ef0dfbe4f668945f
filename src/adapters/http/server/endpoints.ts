/** What the endpoints of many groups have in common. */
import { OpenApi } from "effect/http-api"
import { idParam } from "./fields.ts"
import { problemOf } from "./problem.ts"

export const about = (summary: string) => OpenApi.annotations({ summary })

/** Of an endpoint about one thing, which may not be there. */
export const byId = { params: idParam, error: problemOf(404) }

/** What an endpoint that takes a body answers to one that is too large or in another form. */
export const bodyErrors = [problemOf(413), problemOf(415)]
