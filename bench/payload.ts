/** What is sent: an order-shaped JSON text of exactly `bytes` bytes, different for every message. */
export const payloadOf = (n: number, bytes: number): string => {
  const text = (note: string) =>
    JSON.stringify({ type: "order.paid", order: `ord_${n}`, amount: 1999 + (n % 5000), currency: "EUR", note })
  const room = bytes - text("").length
  if (room < 0) throw new Error(`a message needs at least ${text("").length} bytes`)
  return text("n".repeat(room))
}
