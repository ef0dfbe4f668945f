/**
 * A process of its own that uses up its file descriptors and then tries to connect: prints how each try ended, as JSON.
 * `withoutDescriptors.ts <port>`: where a server listens.
 */
import { closeSync, openSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Duration, Effect, Redacted } from "effect"
import { guardedConnect, type NotConnected } from "../../../../src/adapters/channels/net/guardedConnect.ts"
import { makeResolver } from "../../../../src/adapters/channels/net/resolver.ts"
import { connect as connectAmqp } from "../../../../src/adapters/rabbitmq/client/connect.ts"

const [port, directory] = [process.argv[2]!, process.argv[3]!]
const hosts = join(directory, "hosts")
writeFileSync(hosts, "127.0.0.1 written.example\n")
let now = 0
/** Nobody answers there. */
const resolve = makeResolver({ servers: ["127.0.0.1:1"], hosts, tryMs: 100, deadlineMs: 1_000, now: () => now })
const guard = { allows: () => true }

const tried = (url: string) =>
  new Promise<string>((done) => {
    guardedConnect(new URL(url), { guard, resolve })((error: NotConnected | null, socket) => {
      socket?.destroy()
      done(error?.code ?? "connected")
    }, {})
  })
const triedAmqp = () =>
  Effect.runPromise(
    connectAmqp({
      url: Redacted.make(`amqp://127.0.0.1:${port}`),
      name: "without descriptors",
      timeout: Duration.seconds(1)
    }).pipe(
      Effect.as("connected"),
      Effect.catch(({ code }) => Effect.succeed(code)),
      Effect.scoped
    )
  )

const all = async () => ({
  address: await tried(`http://127.0.0.1:${port}`),
  tls: await tried(`https://127.0.0.1:${port}`),
  written: await tried(`http://written.example:${port}`),
  asked: await tried(`http://asked.example:${port}`),
  amqp: await triedAmqp()
})

// What is loaded when it is first used is loaded before.
const before = await all()
const taken: Array<number> = []
try {
  for (;;) taken.push(openSync("/dev/null", "r"))
} catch {
  // None is left.
}
// Files are read again, and failures asked for again.
now += 60_000
const without = await all()
for (const file of taken) closeSync(file)
// Failures are asked for again, and files are not read again yet.
now += 2_000
console.log(JSON.stringify({ before, without, after: await all() }))
