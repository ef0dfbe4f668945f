/**
 * The pages for readers: `/docs` and `/openapi.json`, and `/`, which leads to the docs. Anybody may ask for them, so a
 * request costs nothing that grows: each page is made and compressed once, when it is first asked for, all answers share
 * those bytes, and who has a page already is told so. Who does not read a page is disconnected (connections.ts).
 */
import { createHash } from "node:crypto"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiScalar, OpenApi } from "effect/http-api"
import type { Api } from "./Api.ts"
import { policyOf } from "./securityHeaders.ts"

interface Page {
  readonly contentType: string
  readonly plain: Uint8Array
  readonly zipped: Uint8Array
  readonly etag: string
  /** What the browser may do for it. */
  readonly policy: string | null
}

const compressed = promisify(gzip)

const pageOf = (contentType: string, plain: Uint8Array, policy: string | null = null): Effect.Effect<Page> =>
  Effect.map(
    Effect.promise(() => compressed(plain, { level: 9 })),
    (zipped) => ({
      contentType,
      plain,
      zipped,
      policy,
      etag: createHash("sha256").update(plain).digest("base64url").slice(0, 27)
    })
  )

/** `gzip` is accepted unless it is not named or has the weight 0. */
const acceptsGzip = (accepted = ""): boolean =>
  accepted.split(",").some((coding) => /^\s*(gzip|x-gzip|\*)\s*(;\s*q=(?!0(\.0*)?\s*$)[\d.]+\s*)?$/i.test(coding))

const isKnown = (known = "", etag: string): boolean =>
  known.split(",").some((each) => each.trim() === "*" || each.trim().replace(/^W\//, "") === etag)

const answerWith = (made: Effect.Effect<Page>) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const page = yield* made
    const { "accept-encoding": accepted, "if-none-match": known } = request.headers
    const zips = acceptsGzip(accepted)
    // Two encodings are two representations, so their tags differ.
    const etag = zips ? `"${page.etag}-gzip"` : `"${page.etag}"`
    const headers = {
      etag,
      vary: "accept-encoding",
      "cache-control": "no-cache",
      ...(page.policy !== null && { "content-security-policy": page.policy })
    }
    if (isKnown(known, etag)) return HttpServerResponse.empty({ status: 304, headers })
    return HttpServerResponse.uint8Array(zips ? page.zipped : page.plain, {
      contentType: page.contentType,
      headers: zips ? { ...headers, "content-encoding": "gzip" } : headers
    })
  })

/** The docs page holds its own scripts and styles: it works without internet access. */
const docsOf = (api: typeof Api): Effect.Effect<Uint8Array> =>
  Effect.promise(async () => {
    const docs = HttpApiScalar.layer(api, { path: "/docs", scalar: { withDefaultFonts: false } })
    const { handler, dispose } = HttpRouter.toWebHandler(docs, { disableLogger: true })
    const response = await handler(new Request("http://localhost/docs"))
    const bytes = new Uint8Array(await response.arrayBuffer())
    await dispose()
    return bytes
  })

/** As a browser takes them: of the text between the tags, without attributes that would make it data. */
const scriptHashesOf = (html: Uint8Array): ReadonlyArray<string> =>
  [
    ...Buffer.from(html)
      .toString()
      .matchAll(/<script(?<attributes>[^>]*)>(?<text>[\s\S]*?)<\/script>/g)
  ].flatMap(({ groups }) =>
    /type="application\/json"/.test(groups!["attributes"]!)
      ? []
      : [createHash("sha256").update(groups!["text"]!).digest("base64")]
  )

export const pagesRoutes = (api: typeof Api) =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const docs = yield* Effect.cached(
        Effect.flatMap(docsOf(api), (html) => pageOf("text/html; charset=utf-8", html, policyOf(scriptHashesOf(html))))
      )
      const openApi = yield* Effect.cached(
        Effect.suspend(() => pageOf("application/json", Buffer.from(JSON.stringify(OpenApi.fromApi(api)))))
      )
      yield* router.add("GET", "/docs", answerWith(docs))
      yield* router.add("GET", "/openapi.json", answerWith(openApi))
      yield* router.add("GET", "/", HttpServerResponse.redirect("/docs", { status: 302 }))
    })
  )
