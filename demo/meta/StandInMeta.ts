/**
 * A stand-in for Meta's WhatsApp Cloud API on the loopback address: it takes messages and refuses them as Meta does,
 * throttles numbers and pairs, has the moods an API has on a bad day, and sends signed receipts.
 *
 * It is something to try Posthaste on without an account at Meta. It keeps everything in memory, delivers to nobody,
 * and knows of Meta's API what its documentation says.
 */
import { randomBytes } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, type Scope } from "effect"
import { type Extra, type Refusal, refusal } from "./graphErrors.ts"
import { isRefusal, judge, judgeQuestion, type Sender, type Taken, type Template } from "./graphRequest.ts"
import { type ReceiptStatus, receiptBody, signatureOf, type Update } from "./receipts.ts"

export interface BusinessNumber extends Sender {
  /** Where its receipts go; null: nowhere. */
  readonly webhook: { readonly url: string; readonly appSecret: string; readonly verifyToken: string } | null
}

/** A message that was taken. */
export interface Sent extends Taken {
  /** As receipts will name it. */
  readonly id: string
}

/** What becomes of a request that is well made. */
export type Mood =
  | { readonly type: "takes" }
  | ({ readonly type: "refuses"; readonly code: number } & Extra)
  /** Takes the message and answers after so long. */
  | { readonly type: "takesAndAnswersLate"; readonly afterMs: number }
  /** Takes the message and answers once this is fulfilled. */
  | { readonly type: "takesAndWaits"; readonly until: Promise<unknown> }
  | { readonly type: "takesAndNeverAnswers" }
  | { readonly type: "takesAndHangsUp" }
  /** Answers with this instead; the message is taken if `taken` says so. */
  | {
      readonly type: "babbles"
      readonly status: number
      readonly body: string
      readonly taken: boolean
      readonly headers?: Readonly<Record<string, string>>
    }

/** Updates in the order they are to be sent in, repeated ones included. */
export interface ReceiptPlan {
  readonly statuses: ReadonlyArray<ReceiptStatus>
  readonly afterMs?: number
  /** Between one and the next; null sends them all in one request. */
  readonly everyMs?: number | null
}

export interface Options {
  readonly templates?: ReadonlyArray<Template>
  /** What becomes of the request, given how many were well made before. */
  readonly mood?: (taken: Taken, earlier: number) => Mood
  /** Null: no receipts. */
  readonly receipts?: (sent: Sent) => ReceiptPlan | null
  /** More messages within a second are refused as Meta does with a number's throughput. */
  readonly perNumberPerSecond?: number
  /** The time that must lie between messages of a pair. */
  readonly perPairMs?: number
}

/** What Posthaste answered to one request with receipts; null: nothing. */
export interface Told {
  readonly body: string
  readonly status: number | null
}

export interface StandInMeta {
  readonly url: string
  readonly register: (number: BusinessNumber) => void
  /** Every request that came, good or bad. */
  readonly requests: ReadonlyArray<{ readonly path: string; readonly body: string; readonly answered: number | null }>
  /** In the order they were taken: a message that is here twice was sent twice. */
  readonly sent: ReadonlyArray<Sent>
  readonly told: ReadonlyArray<Told>
  /** Sends these updates about messages of one number in one request. */
  readonly tell: (phoneNumberId: string, updates: ReadonlyArray<Update>) => Effect.Effect<Told>
  /** An update about a message that was taken, as of now. */
  readonly update: (sent: Sent, status: ReceiptStatus, code?: number) => Update
  /** Asks the number's webhook, as Meta does when it is set up, to prove itself. True when it did. */
  readonly subscribe: (phoneNumberId: string) => Effect.Effect<boolean>
}

const BODY_MAX_BYTES = 1024 * 1024

export const start = Effect.fn("StandInMeta.start")(function* (
  options: Options = {}
): Effect.fn.Return<StandInMeta, never, Scope.Scope> {
  const numbers = new Map<string, BusinessNumber>()
  const requests: Array<{ path: string; body: string; answered: number | null }> = []
  const sent: Array<Sent> = []
  const told: Array<Told> = []
  const timers = new Set<NodeJS.Timeout>()
  const pace = makePace(options)
  let wellMade = 0

  const later = (afterMs: number, act: () => void) => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      act()
    }, afterMs)
    timers.add(timer)
  }

  const take = (taken: Taken): Sent => {
    const one: Sent = { ...taken, id: `wamid.${randomBytes(24).toString("base64")}` }
    sent.push(one)
    const plan = options.receipts?.(one) ?? null
    if (plan !== null) report(one, plan)
    return one
  }

  const update = (one: Sent, status: ReceiptStatus, code?: number): Update => ({
    id: one.id,
    status,
    to: one.to,
    callbackData: one.callbackData,
    at: Math.floor(Date.now() / 1000),
    ...(code === undefined ? {} : { code })
  })

  const report = (one: Sent, { statuses, afterMs = 0, everyMs = 0 }: ReceiptPlan) => {
    const groups = everyMs === null ? [statuses] : statuses.map((status) => [status])
    groups.forEach((group, index) => {
      later(afterMs + index * (everyMs ?? 0), () => {
        void post(
          one.sender.phoneNumberId,
          group.map((status) => update(one, status))
        )
      })
    })
  }

  const post = async (phoneNumberId: string, updates: ReadonlyArray<Update>): Promise<Told> => {
    const number = numbers.get(phoneNumberId)
    if (number?.webhook == null) return { body: "", status: null }
    const body = receiptBody(number, updates)
    const headers = {
      "content-type": "application/json",
      "x-hub-signature-256": signatureOf(number.webhook.appSecret, body)
    }
    const status = await fetch(number.webhook.url, { method: "POST", headers, body }).then(
      (response) => response.status,
      () => null
    )
    told.push({ body, status })
    return { body, status }
  }

  const subscribe = async (phoneNumberId: string): Promise<boolean> => {
    const webhook = numbers.get(phoneNumberId)?.webhook
    if (webhook == null) return false
    const challenge = String(Math.floor(Math.random() * 1e9))
    const url = new URL(webhook.url)
    url.searchParams.set("hub.mode", "subscribe")
    url.searchParams.set("hub.challenge", challenge)
    url.searchParams.set("hub.verify_token", webhook.verifyToken)
    return await fetch(url).then(
      async (response) => response.status === 200 && (await response.text()) === challenge,
      () => false
    )
  }

  const serve = (request: IncomingMessage, body: string, response: ServerResponse) => {
    const { authorization = null, "content-type": contentType = null } = request.headers
    const { method = "", url: path = "" } = request
    if (method === "GET") {
      const { status, body: text } = judgeQuestion(path, authorization, numbers)
      response.writeHead(status, { "content-type": "application/json; charset=UTF-8" }).end(JSON.stringify(text))
      return
    }
    const log = { path, body, answered: null as number | null }
    requests.push(log)
    const answer = (status: number, text: string, headers: Readonly<Record<string, string>> = {}) => {
      log.answered = status
      response.writeHead(status, { "content-type": "application/json; charset=UTF-8", ...headers }).end(text)
    }
    const refuse = ({ status, body: text }: Refusal) => answer(status, JSON.stringify(text))
    const welcome = (one: Sent) => answer(200, JSON.stringify(answerTo(one)))

    const judged = judge({ method, path, authorization, contentType, body }, numbers, options.templates ?? [])
    if (isRefusal(judged)) return refuse(judged)
    const tooFast = pace(judged, Date.now())
    if (tooFast !== null) return refuse(refusal(tooFast))
    const mood = options.mood?.(judged, wellMade) ?? { type: "takes" }
    wellMade += 1
    switch (mood.type) {
      case "takes":
        return welcome(take(judged))
      case "refuses":
        return refuse(refusal(mood.code, mood))
      case "takesAndAnswersLate": {
        const one = take(judged)
        return later(mood.afterMs, () => welcome(one))
      }
      case "takesAndWaits": {
        const one = take(judged)
        return void mood.until.then(() => welcome(one))
      }
      case "takesAndNeverAnswers":
        take(judged)
        return
      case "takesAndHangsUp":
        take(judged)
        request.socket.resetAndDestroy()
        return
      case "babbles":
        if (mood.taken) take(judged)
        return answer(mood.status, mood.body, mood.headers)
    }
  }

  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    let size = 0
    request.on("error", () => {})
    request.on("data", (chunk: Buffer) => {
      size += chunk.length
      if (size <= BODY_MAX_BYTES) chunks.push(chunk)
    })
    request.on("end", () => serve(request, Buffer.concat(chunks).toString("utf8"), response))
  })

  const port = yield* Effect.acquireRelease(
    Effect.callback<number>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed((server.address() as AddressInfo).port)))
    }),
    () =>
      Effect.sync(() => {
        for (const timer of timers) clearTimeout(timer)
        server.close()
        server.closeAllConnections()
      })
  )
  return {
    url: `http://127.0.0.1:${port}`,
    register: (number) => numbers.set(number.phoneNumberId, number),
    requests,
    sent,
    told,
    tell: (phoneNumberId, updates) => Effect.promise(() => post(phoneNumberId, updates)),
    update,
    subscribe: (phoneNumberId) => Effect.promise(() => subscribe(phoneNumberId))
  }
})

const answerTo = ({ id, to }: Sent) => ({
  messaging_product: "whatsapp",
  contacts: [{ input: to, wa_id: to }],
  messages: [{ id, message_status: "accepted" }]
})

/** The code a message is refused with because it comes too fast; null when it does not. */
const makePace = ({ perNumberPerSecond = Number.POSITIVE_INFINITY, perPairMs = 0 }: Options) => {
  const byNumber = new Map<string, ReadonlyArray<number>>()
  const byPair = new Map<string, number>()
  return ({ sender: { phoneNumberId }, to }: Taken, now: number): number | null => {
    const recent = (byNumber.get(phoneNumberId) ?? []).filter((at) => at > now - 1_000)
    if (recent.length >= perNumberPerSecond) return 130429
    const pair = `${phoneNumberId}/${to}`
    if (now < (byPair.get(pair) ?? 0) + perPairMs) return 131056
    byNumber.set(phoneNumberId, [...recent, now])
    byPair.set(pair, now)
    return null
  }
}
