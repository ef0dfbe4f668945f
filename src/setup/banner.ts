/** The text that a start prints: the API's address and, with the embedded database, the first commands to try. */
export interface FirstSteps {
  readonly operatorKey: string
  /** Null when the first org's key was revoked. */
  readonly orgKey: string | null
  readonly org: string
  readonly endpointId: string
  readonly receiverUrl: string
  readonly dataDir: string
}

/** `url` is null when this process does not play the role `api`. */
export const banner = (url: string | null, roles: ReadonlyArray<string>, first: FirstSteps | null): string => {
  const lines = ["", `  Posthaste  ${url ?? "works without an API"}  (${roles.join(", ")})`]
  if (url !== null) {
    lines.push(`  API docs   ${url}/docs`)
    if (first !== null) lines.push(...firstSteps(url, first))
  }
  return `${lines.join("\n")}\n`
}

const firstSteps = (url: string, first: FirstSteps): ReadonlyArray<string> => {
  const auth =
    first.orgKey === null
      ? `-H 'authorization: Bearer ${first.operatorKey}' -H 'x-org-id: ${first.org}'`
      : `-H 'authorization: Bearer ${first.orgKey}'`
  const message = JSON.stringify({
    channel: "webhook",
    to: first.endpointId,
    eventType: "greeting.sent",
    payloadJson: { hello: "world" }
  })
  return [
    `  Data       ${first.dataDir}`,
    "",
    `  Operator key             ${first.operatorKey}`,
    `  Key of org ${first.org.padEnd(13)} ${first.orgKey ?? "(revoked)"}`,
    "",
    "  Send a message to the built-in sample receiver, look at it, and see what arrived:",
    "",
    `curl -s -X POST ${url}/api/v1/outbound/messages ${auth} -H 'content-type: application/json' -d '${message}'`,
    "",
    `curl -s '${url}/api/v1/outbound/messages?limit=1' ${auth}`,
    "",
    `curl -s ${first.receiverUrl}`
  ]
}

/** The address to call a server that listens on `host`. */
export const urlOf = (host: string, port: number): string => {
  const callable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host
  return `http://${callable.includes(":") ? `[${callable}]` : callable}:${port}`
}
