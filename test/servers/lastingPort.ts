/**
 * A loopback port for a server that comes and goes. The kernel hands ports above 32767 to whoever asks for any, and a
 * server that was killed would find its port taken: these lie below, where nobody gets one by chance.
 */
import { randomInt } from "node:crypto"
import { createServer } from "node:net"

export const lastingPort = async (): Promise<number> => {
  for (let tries = 0; tries < 100; tries++) {
    const port = randomInt(15_000, 32_000)
    if (await isFree(port)) return port
  }
  throw new Error("no free port between 15000 and 32000 was found")
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })
