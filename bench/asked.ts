/** One request over a connection of `agent`, from an address of this machine; answers its status, 0 for none. */
import { type Agent, request as send } from "node:http"

export const asked = (
  agent: Agent,
  { hostname, port }: { readonly hostname: string; readonly port: string },
  {
    bearer,
    path,
    body,
    from
  }: { readonly bearer: string; readonly path: string; readonly body?: string; readonly from: string }
) =>
  new Promise<number>((resolve) => {
    const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" }
    const method = body === undefined ? "GET" : "POST"
    const outgoing = send({ hostname, port, agent, localAddress: from, method, path, headers }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode!))
    })
    outgoing.on("error", () => resolve(0))
    outgoing.end(body)
  })
