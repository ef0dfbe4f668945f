/** `npm run example`, as a reader would run it: on a RabbitMQ of its own, and without any. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { dirname, join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { installed } from "../servers/installed.ts"

const run = async (env: Record<string, string>) => {
  const child = spawn(process.execPath, [join(import.meta.dirname, "../../examples/orders/run.ts")], {
    env: { TMPDIR: process.env["TMPDIR"] ?? "/tmp", ...env },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let printed = ""
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (printed += String(text)))
  // It ends what it has started, also when the test is over before it is.
  onTestFinished(() => void child.kill("SIGTERM"))
  const [code] = await once(child, "close")
  return { code, printed }
}

/** The lines under the first one that has `heading`, up to the next empty line. */
const under = (printed: string, heading: string): ReadonlyArray<string> => {
  const lines = printed.split("\n")
  const at = lines.findIndex((line) => line.includes(heading))
  return lines.slice(at + 1, lines.indexOf("", at))
}

describe("the example with orders", () => {
  it("takes three orders, and shows the way of each of their messages", async () => {
    const program = await installed("rabbitmq-server")
    const { code, printed } = await run({ PATH: `${dirname(program)}:${process.env["PATH"]}` })
    expect({ code, errors: printed.split("\n").filter((line) => /error/i.test(line)) }).toEqual({ code: 0, errors: [] })

    const way = /^ {4}\S+ (\S+ \S+ \S+): QUEUED 0 ms · SENDING \d+ ms · SENT \d+ ms · DELIVERED \d+ ms$/
    const messagesOf = (order: string) => under(printed, order).flatMap((line) => way.exec(line)?.[1] ?? [])
    expect(messagesOf(": tea for 12.5")).toEqual([
      "shop amqp payment.wanted",
      "billing webhook payment.captured",
      "shop webhook order.paid"
    ])
    expect(messagesOf(": kettle for 250")).toEqual(["shop amqp payment.wanted", "billing webhook payment.declined"])
    expect(under(printed, ": unicorn for 1")).toEqual([
      "  the shop answers COMPENSATED: reserve: no unicorn left",
      "  its 0 messages:"
    ])

    expect(printed.match(/charges 12.5 for order/g)).toHaveLength(1)
    expect(under(printed, "What is in the services' tables").map((line) => line.trim().replaceAll(/ +/g, " "))).toEqual(
      ["orders kettle cancelled, tea paid", "stock kettle 1, tea 9, unicorn 0", "charges 12.5", "parcels tea"]
    )
  })

  it("says in one line what it needs where there is no RabbitMQ", async () => {
    const { code, printed } = await run({ PATH: dirname(process.execPath) })
    expect(code).toBe(1)
    expect(printed).toBe(
      "posthaste: this example needs RabbitMQ 3.10 or later: install rabbitmq-server so that it is on PATH, or name a broker in AMQP_URL\n"
    )
  })
})
