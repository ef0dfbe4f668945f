/**
 * The pages for readers: `/docs` and `/openapi.json`, and `/`, which leads to the docs. Anybody may ask for them, so a
 * request costs nothing that grows: each page is made and compressed once, when it is first asked for, all answers share
 * those bytes, and who has a page already is told so.
 */
import { createHash } from "node:crypto"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiScalar, OpenApi } from "effect/http-api"
import type { Api } from "./Api.ts"

/** Long enough for a slow line. Who does not read what it asked for is disconnected, and the bytes are free. */
export const PAGE_READ_WITHIN_MS = 30_000

interface Page {
  readonly contentType: string
  readonly plain: Uint8Array
  readonly zipped: Uint8Array
  readonly etag: string
}

const compressed = promisify(gzip)

const pageOf = (contentType: string, plain: Uint8Array): Effect.Effect<Page> =>
  Effect.map(
    Effect.promise(() => compressed(plain, { level: 9 })),
    (zipped) => ({
      contentType,
      plain,
      zipped,
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
    const headers = { etag, vary: "accept-encoding", "cache-control": "no-cache" }
    if (isKnown(known, etag)) return HttpServerResponse.empty({ status: 304, headers })
    endUnlessRead(NodeHttpServerRequest.toServerResponse(request))
    return HttpServerResponse.uint8Array(zips ? page.zipped : page.plain, {
      contentType: page.contentType,
      headers: zips ? { ...headers, "content-encoding": "gzip" } : headers
    })
  })

const endUnlessRead = (response: ReturnType<typeof NodeHttpServerRequest.toServerResponse>): void => {
  const deadline = setTimeout(() => response.destroy(), PAGE_READ_WITHIN_MS).unref()
  response.once("close", () => clearTimeout(deadline))
}

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

export const pagesRoutes = (api: typeof Api) =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const docs = yield* Effect.cached(Effect.flatMap(docsOf(api), (html) => pageOf("text/html; charset=utf-8", html)))
      const openApi = yield* Effect.cached(
        Effect.suspend(() => pageOf("application/json", Buffer.from(JSON.stringify(OpenApi.fromApi(api)))))
      )
      yield* router.add("GET", "/docs", answerWith(docs))
      yield* router.add("GET", "/openapi.json", answerWith(openApi))
      yield* router.add("GET", "/", HttpServerResponse.redirect("/docs", { status: 302 }))
    })
  )
