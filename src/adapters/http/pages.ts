/**
 * `/docs`, `/openapi.json`, and `/`, which leads to the docs. Each page is made and compressed once; all answers share
 * its bytes, and a caller with the same tag gets none.
 */
import { createHash } from "node:crypto"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiScalar, OpenApi } from "effect/http-api"
import type { Api } from "./Api.ts"
import { policyOf } from "./server/securityHeaders.ts"

interface Page {
  readonly contentType: string
  readonly plain: Uint8Array
  readonly zipped: Uint8Array
  readonly etag: string
  /** The content security policy. */
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
    // Two encodings need two tags.
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

/** The docs page holds its own scripts and styles, so it works offline. */
const docsOf = (api: typeof Api): Effect.Effect<Uint8Array> =>
  Effect.promise(async () => {
    const docs = HttpApiScalar.layer(api, { path: "/docs", scalar: { withDefaultFonts: false } })
    const { handler, dispose } = HttpRouter.toWebHandler(docs, { disableLogger: true })
    const response = await handler(new Request("http://localhost/docs"))
    const bytes = new Uint8Array(await response.arrayBuffer())
    await dispose()
    return bytes
  })

/** Hashes of the scripts, as a browser takes them: of the text between the tags. */
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
