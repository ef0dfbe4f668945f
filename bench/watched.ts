/**
 * (m) What it costs to be watched: the deliveries of (b) by a worker whose metrics are read every second, and by one that sends
 * the traces of one message in a hundred to a collector. Counting itself is never off, so it is a part of (b).
 */
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { freePort } from "./posthaste.ts"

export interface Watch {
  /** Of every process that accepts or delivers. */
  readonly settings: Readonly<Record<string, string>>
  /** Fails when nothing was seen: what nobody watched has cost nothing. */
  readonly stop: () => Promise<void>
}

const SCRAPED_EVERY_MS = 1_000
const SHARE = "0.01"

export const scraping = async (): Promise<Watch> => {
  const port = await freePort()
  let seen = 0
  const scrape = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => null)
    // The process may not be there yet, or not any more.
    if (answer?.ok !== true) return
    const count = /^posthaste_attempts_total\{.*outcome="succeeded".*\} (\d+)/m.exec(await answer.text())
    seen = Math.max(seen, Number(count?.[1] ?? 0))
  }
  const timer = setInterval(() => void scrape(), SCRAPED_EVERY_MS)
  return {
    settings: { POSTHASTE_METRICS_PORT: String(port) },
    stop: async () => {
      clearInterval(timer)
      if (seen === 0) throw new Error("no scrape has seen an attempt: there were too few messages")
    }
  }
}

export const collecting = async (): Promise<Watch> => {
  let bytes = 0
  const collector = createServer((request, response) => {
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length
    })
    request.on("end", () => response.writeHead(200, { "content-type": "application/x-protobuf" }).end())
  }).listen(0, "127.0.0.1")
  await once(collector, "listening")
  const { port } = collector.address() as AddressInfo
  return {
    settings: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: SHARE
    },
    stop: async () => {
      collector.closeAllConnections()
      collector.close()
      if (bytes === 0) throw new Error("no span came to the collector")
    }
  }
}
