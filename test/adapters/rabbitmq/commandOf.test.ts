import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { commandOf } from "../../../src/adapters/rabbitmq/consumeCommands.ts"

type Delivery = Parameters<typeof commandOf>[0]

const delivery = (headers: Record<string, unknown>) =>
  ({
    ...{ type: "SendMessage", contentType: "application/json", messageId: "order-4711" },
    headers: { "x-org-id": "acme", ...headers },
    body: Buffer.from("{}")
  }) as unknown as Delivery

describe("a command over RabbitMQ", () => {
  it("brings the trace that its header names", () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    expect(Result.getOrThrow(commandOf(delivery({ traceparent })))).toMatchObject({ traceparent })
    expect(Result.getOrThrow(commandOf(delivery({ traceparent: 7 })))).not.toHaveProperty("traceparent")
    expect(Result.getOrThrow(commandOf(delivery({})))).not.toHaveProperty("traceparent")
  })
})
