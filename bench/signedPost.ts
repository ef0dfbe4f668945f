/**
 * One signed POST, the same for everybody who is compared with Posthaste: Standard Webhooks headers, HMAC-SHA256 over
 * `id.timestamp.body`, 64 keep-alive connections, the answer read to its end. Anything but 2xx is an error.
 */
import { createHmac } from "node:crypto"
import { Pool } from "undici"

export const connections = 64
/** Standard Webhooks: 24 to 64 bytes, base64. The value protects nothing: it is sent nowhere but to the bench's own sink. */
export const secret = `whsec_${Buffer.from("the bench signs with these 32 by").toString("base64")}`
export const keyOf = (whsec: string): Buffer => Buffer.from(whsec.slice("whsec_".length), "base64")

export const signatureOf = (key: Buffer, id: string, timestamp: string, body: string | Buffer): string =>
  `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`

export interface Poster {
  readonly post: (id: string, body: string) => Promise<void>
  readonly close: () => Promise<void>
}

export const makePoster = (url: string): Poster => {
  const { origin, pathname } = new URL(url)
  const pool = new Pool(origin, { connections, pipelining: 1, keepAliveTimeout: 60_000 })
  const key = keyOf(secret)
  return {
    post: async (id, body) => {
      const timestamp = String(Math.floor(Date.now() / 1000))
      const { statusCode, body: answer } = await pool.request({
        path: pathname,
        method: "POST",
        headers: {
          "content-type": "application/json",
          "webhook-id": id,
          "webhook-timestamp": timestamp,
          "webhook-signature": signatureOf(key, id, timestamp, body)
        },
        body
      })
      await answer.dump()
      if (statusCode < 200 || statusCode > 299) throw new Error(`the sink answered ${statusCode}`)
    },
    close: () => pool.close()
  }
}
