/** The text of a start: addresses and a first command. Only the first start prints keys. */
import type { X509Certificate } from "node:crypto"
import { join, relative, resolve } from "node:path"
import { nameIn } from "./certificate.ts"

interface FirstSteps {
  readonly isFirst: boolean
  /** Null when POSTHASTE_OPERATOR_KEY gave it. */
  readonly operatorKey: string | null
  /** Null when it was revoked. */
  readonly orgKey: string | null
  readonly org: string
  readonly endpointId: string
  readonly receiverUrl: string
  readonly dataDir: string
}

interface Surroundings {
  readonly cwd: string
  readonly home: string
}

export const banner = (
  url: string | null,
  roles: ReadonlyArray<string>,
  first: FirstSteps | null,
  where: Surroundings
): string => {
  const lines = ["", `  Posthaste  ${url ?? "works without an API"}  (${roles.join(", ")})`]
  if (url !== null) {
    lines.push(`  API docs   ${url}/docs`)
    if (first !== null) lines.push(...firstSteps(url, first, where))
  }
  return `${lines.join("\n")}\n`
}

const firstSteps = (url: string, first: FirstSteps, where: Surroundings): ReadonlyArray<string> => {
  const { isFirst, operatorKey, orgKey, dataDir } = first
  const files = [
    ...(operatorKey === null ? [] : ["operator-key"]),
    ...(orgKey === null ? [] : ["default-org-key"])
  ].map((name) => pathFrom(where.cwd, join(dataDir, name)))
  return [
    `  Data       ${dataDir}`,
    ...(files.length === 0 || isFirst ? [] : [`  Keys       ${files.join(", ")}`]),
    ...(isFirst
      ? [
          "",
          `  Operator key             ${operatorKey ?? "(POSTHASTE_OPERATOR_KEY)"}`,
          `  Key of org ${first.org.padEnd(13)} ${orgKey ?? "(revoked)"}`,
          ...(files.length === 0 ? [] : [`  Printed this once; they stay in ${files.join(" and ")}`])
        ]
      : []),
    "",
    "  Try it in a second terminal, in this directory. This sends a message to the",
    "  built-in receiver, waits until it has arrived, and shows how:",
    "",
    `    ${command(first, where)}`,
    ...(isFirst
      ? ["", "  The same by hand: send one, look at it, see what arrived:", "", ...curl(url, first, where)]
      : [])
  ]
}

/** It finds service and key by the data directory. */
const command = (first: FirstSteps, { cwd, home }: Surroundings): string => {
  const { dataDir, endpointId, orgKey, org } = first
  const variables = [
    ...(dataDir === resolve(cwd, ".posthaste") ? [] : [`POSTHASTE_DATA_DIR=${inShell(dataDir)}`]),
    // By default the command line takes the org's key, which was revoked.
    ...(orgKey === null ? [`POSTHASTE_OPERATOR_KEY="${operatorKeyIn(first, cwd)}" POSTHASTE_ORG=${org}`] : [])
  ]
  const program = inShell(pathFrom(cwd, join(home, "bin/posthaste")))
  return [...variables, program, `send --wait --to ${endpointId} --payload '{"hello":"world"}'`].join(" ")
}

const operatorKeyIn = ({ operatorKey, dataDir }: FirstSteps, cwd: string): string =>
  operatorKey === null ? "$POSTHASTE_OPERATOR_KEY" : textOf(pathFrom(cwd, join(dataDir, "operator-key")))

const textOf = (file: string): string => `$(cat ${inShell(file)})`

const curl = (url: string, first: FirstSteps, { cwd }: Surroundings): ReadonlyArray<string> => {
  const auth =
    first.orgKey === null
      ? `-H "authorization: Bearer ${operatorKeyIn(first, cwd)}" -H 'x-org-id: ${first.org}'`
      : `-H "authorization: Bearer ${textOf(pathFrom(cwd, join(first.dataDir, "default-org-key")))}"`
  const message = JSON.stringify({
    channel: "webhook",
    to: first.endpointId,
    eventType: "greeting.sent",
    payloadJson: { hello: "world" }
  })
  return [
    `curl -s -X POST ${url}/api/v1/outbound/messages ${auth} -H 'content-type: application/json' -d '${message}'`,
    `curl -s '${url}/api/v1/outbound/messages?limit=1' ${auth}`,
    `curl -s ${first.receiverUrl}`
  ]
}

/** Relative when that is shorter and below the current directory. */
const pathFrom = (cwd: string, path: string): string => {
  const short = relative(cwd, path)
  return short === "" || short.startsWith("..") ? path : short
}

const inShell = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

/** The URL of a server that listens on `host`; `certificate` is null for plain HTTP. */
export const urlOf = (host: string, port: number, certificate: X509Certificate | null = null): string => {
  const local = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host
  const callable = certificate === null ? local : nameIn(certificate, local)
  return `${certificate === null ? "http" : "https"}://${callable.includes(":") ? `[${callable}]` : callable}:${port}`
}
