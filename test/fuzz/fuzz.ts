/**
 * Sends requests made from the OpenAPI document of a running service and looks for what no request may cause: an answer of 5xx,
 * no answer at all, a connection that is cut. What it finds is made as small as it goes and told as a command.
 */
import { Agent, request as send } from "node:http"
import { diceOf } from "./dice.ts"
import { type Document, type Known, makerOf, type Request, remember, smaller, written } from "./requests.ts"

export interface Options {
  readonly url: string
  readonly key: string
  /** The first org that is acted for: another after each few thousand requests, so that no org gets larger than orgs are. */
  /** The first org that is acted for: another after each few thousand requests, so that no org gets larger than orgs are. */
  readonly org: string
  readonly requests: number
  readonly seed: number
  /** How many requests are under way at once. */
  readonly atOnce: number
  /** Who is not answered by then hangs. */
  readonly answerWithinMs: number
  readonly progress?: (done: number) => void
}

export interface Finding {
  readonly what: string
  readonly operationId: string
  /** How to see it again. */
  readonly command: string
}

export interface Report {
  readonly byStatus: ReadonlyMap<string, number>
  readonly slowestMs: number
  readonly operations: number
  readonly findings: ReadonlyArray<Finding>
}

interface Answered {
  /** Null when no answer came. */
  readonly status: number | null
  readonly text: string
  readonly ms: number
  readonly error: string | null
}

const FINDINGS_MAX = 20
const REQUESTS_PER_ORG = 5_000
const SMALLER_TRIES_MAX = 150
/** The feed does not end: its first bytes are its answer. */
const ENDLESS = "text/event-stream"

const bytesOf = ({ body }: Request): Buffer | null =>
  body === null ? null : "bytes" in body ? body.bytes : Buffer.from(written(body.json))

const targetOf = ({ path, query }: Request): string => {
  const search = query.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join("&")
  return search === "" ? path : `${path}?${search}`
}

const encoded = (text: string) => encodeURIComponent(text.toWellFormed())

/** A path may hold what Node's client refuses to send; a server's parser would refuse it too. */
const isSendable = (request: Request): boolean =>
  !/[^\x21-\x7e]/.test(targetOf(request)) &&
  request.headers.every(([, value]) => !/[^\t\x20-\x7e\x80-\xff]/.test(value))

const call = (url: URL, agent: Agent, request: Request, withinMs: number): Promise<Answered> =>
  new Promise((resolve) => {
    const since = performance.now()
    const body = bytesOf(request)
    const answered = (status: number | null, text: string, error: string | null = null) => {
      clearTimeout(deadline)
      resolve({ status, text, error, ms: performance.now() - since })
    }
    const outgoing = send({
      host: url.hostname,
      port: url.port,
      agent,
      method: request.method,
      path: targetOf(request),
      headers: [
        ["host", url.host],
        ...request.headers,
        ...(body === null ? [] : [["content-length", String(body.length)] as const])
      ].flat() as unknown as Record<string, string>
    })
    const deadline = setTimeout(() => {
      answered(null, "", `no answer within ${withinMs} ms`)
      outgoing.destroy()
    }, withinMs)
    outgoing.on("error", (error: NodeJS.ErrnoException) => answered(null, "", error.code ?? error.message))
    outgoing.on("response", (response) => {
      if (response.headers["content-type"]?.startsWith(ENDLESS)) {
        answered(response.statusCode!, "")
        outgoing.destroy()
        return
      }
      let text = ""
      response.setEncoding("utf8")
      response.on("data", (chunk: string) => {
        text += chunk
      })
      response.on("end", () => answered(response.statusCode!, text))
      response.on("error", (error) => answered(null, text, error.message))
    })
    outgoing.end(body ?? undefined)
  })

/** A request that was refused before it was read has no method, so its answer has a body, which a client of HEAD won't read. */
const CLOSED = "HPE_CLOSED_CONNECTION"

/** Null when the answer is one that a request may cause. */
const wrongIn = ({ status, error }: Answered): string | null =>
  error === CLOSED ? null : status === null ? (error ?? "no answer") : status >= 500 ? `answered ${status}` : null

export const fuzz = async (options: Options): Promise<Report> => {
  const url = new URL(options.url)
  const agent = new Agent({ keepAlive: true, maxSockets: options.atOnce })
  const document = (await (await fetch(new URL("/openapi.json", url))).json()) as Document
  const dice = diceOf(options.seed)
  let known: Known = { ids: new Map(), cursors: [] }
  let make = makerOf(document, dice, known, options)
  const byStatus = new Map<string, number>()
  const findings: Array<Finding> = []
  const operations = new Set<string>()
  let slowestMs = 0
  let sent = 0

  const again = (request: Request) => call(url, agent, request, options.answerWithinMs)

  /** Seen again, alone: what was cut because the client reused a connection that closed is nobody's fault. */
  const confirmed = async (request: Request, what: string): Promise<string | null> => {
    if (what.startsWith("answered")) return what
    for (let tries = 0; tries < 2; tries++) if (wrongIn(await again(request)) === null) return null
    return wrongIn(await again(request))
  }

  const smallest = async (request: Request): Promise<Request> => {
    let least = request
    let tries = 0
    for (let found = true; found; ) {
      found = false
      for (const candidate of smaller(least)) {
        if (tries++ > SMALLER_TRIES_MAX) return least
        if (wrongIn(await again(candidate)) === null) continue
        least = candidate
        found = true
        break
      }
    }
    return least
  }

  const one = async () => {
    const request = make()
    if (!isSendable(request)) return
    operations.add(request.operationId)
    const answered = await again(request)
    slowestMs = Math.max(slowestMs, answered.ms)
    const label = String(answered.status ?? answered.error)
    byStatus.set(label, (byStatus.get(label) ?? 0) + 1)
    if (answered.status !== null && answered.status < 300) remember(known, request.path, answered.text)
    const suspicion = wrongIn(answered)
    if (suspicion === null || findings.length >= FINDINGS_MAX) return
    const what = await confirmed(request, suspicion)
    if (what === null) return
    if (findings.some((each) => each.operationId === request.operationId && each.what === what)) return
    const finding = { what, operationId: request.operationId }
    findings.push({ ...finding, command: commandOf(options.url, await smallest(request)) })
  }

  await Promise.all(
    Array.from({ length: options.atOnce }, async () => {
      while (sent < options.requests) {
        sent += 1
        if (sent % REQUESTS_PER_ORG === 0) {
          known = { ids: new Map(), cursors: [] }
          make = makerOf(document, dice, known, { key: options.key, org: `${options.org}-${sent}` })
        }
        await one()
        options.progress?.(sent)
      }
    })
  )
  agent.destroy()
  return { byStatus, slowestMs, operations: operations.size, findings }
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

const commandOf = (url: string, request: Request): string => {
  const body = bytesOf(request)
  return [
    `curl -i -X ${request.method} ${quoted(`${url}${targetOf(request)}`)}`,
    ...request.headers.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === null ? [] : [`--data-binary ${quoted(body.toString("utf8").slice(0, 4000))}`])
  ].join(" ")
}
