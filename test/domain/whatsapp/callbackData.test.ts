import { describe, expect, it } from "vitest"
import { MessageId } from "../../../src/domain/ids.ts"
import { callbackData, readCallbackData } from "../../../src/domain/whatsapp/callbackData.ts"

const sent = { messageId: MessageId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01"), epoch: 2, attempt: 17 }

describe("callback data", () => {
  it("names an attempt, is read back, and is short", () => {
    expect(callbackData(sent)).toBe("posthaste1.0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01.2.17")
    expect(readCallbackData(callbackData(sent))).toEqual(sent)
    expect(callbackData({ ...sent, epoch: 999_999_999, attempt: 999_999_999 }).length).toBeLessThan(100)
  })

  it.each([
    "",
    "order-4711",
    "posthaste2.0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01.2.17",
    "posthaste1.0198f0a2.2.17",
    "posthaste1.0198F0A2-3C52-7C43-8B1A-6D2F6F1F0A01.2.17",
    "posthaste1.0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01.2",
    "posthaste1.0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01.0.1",
    "posthaste1.0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01.2.1e3",
    "posthaste1.0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01.2.17.1"
  ])("that is not ours is told apart: %j", (text) => {
    expect(readCallbackData(text)).toBeNull()
  })
})
