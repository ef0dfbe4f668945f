/** A nameserver over UDP, of which a test says what it answers. It goes with the test. */
import dgram from "node:dgram"
import { afterEach } from "vitest"

interface Records {
  readonly a?: ReadonlyArray<string>
  /** In hex. */
  readonly aaaa?: string
  readonly ttl?: number
}

export interface Zone {
  /** A function is told how often its name was asked for before, by the type of the question. */
  readonly [name: string]: Entry | ((before: number, type: "A" | "AAAA") => Entry | undefined)
}

type Entry = Records | "silent" | "fails"

const servers: Array<dgram.Socket> = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

/** Answers from the zone over UDP: a name that is not in it does not exist. */
export const nameserver = async (zone: Zone) => {
  const asked: Array<string> = []
  const socket = dgram.createSocket("udp4")
  servers.push(socket)
  socket.on("message", (question, from) => {
    const labels: Array<string> = []
    let at = 12
    while (question[at] !== 0) {
      labels.push(question.toString("latin1", at + 1, at + 1 + question[at]!))
      at += question[at]! + 1
    }
    const type = question.readUInt16BE(at + 1)
    const name = labels.join(".").toLowerCase()
    const typeName = type === 1 ? "A" : "AAAA"
    const asking = `${typeName} ${name}`
    const before = asked.filter((question) => question === asking).length
    asked.push(asking)
    const found = zone[name]
    const entry = typeof found === "function" ? found(before, typeName) : found
    if (entry === "silent") return
    const records =
      typeof entry === "object" ? (type === 1 ? (entry.a ?? []) : entry.aaaa === undefined ? [] : [entry.aaaa]) : []
    const answers = records.map((address) => {
      const data = type === 1 ? Buffer.from(address.split(".").map(Number)) : Buffer.from(address, "hex")
      const head = Buffer.alloc(12)
      head.writeUInt16BE(0xc00c, 0)
      head.writeUInt16BE(type, 2)
      head.writeUInt16BE(1, 4)
      head.writeUInt32BE((entry as { ttl?: number }).ttl ?? 60, 6)
      head.writeUInt16BE(data.length, 10)
      return Buffer.concat([head, data])
    })
    const head = Buffer.alloc(12)
    question.copy(head, 0, 0, 2)
    head.writeUInt16BE(0x8180 | (entry === undefined ? 3 : entry === "fails" ? 2 : 0), 2)
    head.writeUInt16BE(1, 4)
    head.writeUInt16BE(answers.length, 6)
    socket.send(Buffer.concat([head, question.subarray(12, at + 5), ...answers]), from.port, from.address)
  })
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve))
  return { asked, servers: [`127.0.0.1:${socket.address().port}`] }
}
