/**
 * Whatever starts Posthaste (image, compose, systemd, chart) speaks of it as it is: every variable is one that it reads, its ports
 * and times are its own, and its process has no right that it does not need.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import manifest from "../../package.json" with { type: "json" }
import { cases, renderedOf } from "./chart.ts"

const read = (file: string) => readFileSync(join(import.meta.dirname, "../..", file), "utf8")
const namesIn = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name]) => name!)

const settings = new Set(namesIn(read("docs/configuration.md"), /^\| `([A-Z_]+)` \|/gm))
/** Node's own. */
const ofNode = new Set(["NODE_ENV", "NODE_COMPILE_CACHE"])
const unknownAmong = (names: ReadonlyArray<string>) => names.filter((name) => !settings.has(name) && !ofNode.has(name))

/** The part of compose that is Posthaste. */
const compose = read("docker-compose.yml")
const composed = compose.slice(compose.indexOf("\n  posthaste:"), compose.indexOf("\n  postgres:"))
const dockerfile = read("Dockerfile")
const unit = read("deploy/systemd/posthaste.service")

const good = cases.filter((name) => !name.startsWith("refused-"))
/** The objects that the chart makes of a file of values. */
const objectsOf = (name: string, kind: string) =>
  renderedOf(name)
    .split(/^---$/m)
    .filter((text) => new RegExp(`^kind: ${kind}$`, "m").test(text))
const deployments = good.flatMap((name) => objectsOf(name, "Deployment"))

describe("the variables that are set", () => {
  it("in the image, in compose and by systemd are settings", () => {
    const image = namesIn(dockerfile.slice(dockerfile.indexOf("\nENV ")), /^(?:ENV)? +([A-Z_]+)=/gm)
    const inCompose = namesIn(composed, /^ {6}([A-Z_]+): /gm)
    const bySystemd = namesIn(unit, /^Environment=(.+)$/gm).flatMap((line) => namesIn(line, /([A-Z_]+)=/g))
    expect(unknownAmong([...image, ...inCompose, ...bySystemd])).toEqual([])
    expect([image.length, inCompose.length, bySystemd.length].every((count) => count >= 3)).toBe(true)
  })

  it("by the chart are settings, and so are those it speaks of", () => {
    const named = good.flatMap((name) => namesIn(renderedOf(name), /^ +- name: ([A-Z][A-Z_]+)$/gm))
    expect(named).toContain("EVENTSTORE_URL")
    const values = read("deploy/helm/posthaste/values.yaml")
    const spokenOf = namesIn(values, /\b((?:POSTHASTE_[A-Z_]+)|[A-Z]+_URL)\b/g)
    const checked = namesIn(read("deploy/helm/posthaste/templates/_helpers.tpl"), /"([A-Z][A-Z_]+)"/g)
    expect(spokenOf.length).toBeGreaterThan(5)
    expect(unknownAmong([...named, ...spokenOf, ...checked])).toEqual([])
  })
})

describe("a process in a container", () => {
  it("has the time that its stop takes", () => {
    const [, stop] = /STOPPED_WITHIN_MS = (\d+)_000/.exec(read("src/main.ts"))!
    const given = [
      ...namesIn(composed, /stop_grace_period: (\d+)s/g),
      ...namesIn(unit, /TimeoutStopSec=(\d+)/g),
      // The chart waits 5 s before it begins.
      ...deployments.flatMap((text) =>
        namesIn(text, /terminationGracePeriodSeconds: (\d+)/g).map((s) => String(Number(s) - 5))
      )
    ]
    expect(given).toHaveLength(2 + deployments.length)
    for (const seconds of given) expect(Number(seconds)).toBeGreaterThan(Number(stop))
  })

  it("has no right that it does not need", () => {
    for (const text of deployments) {
      for (const line of [
        /^ {8}runAsNonRoot: true$/m,
        /^ {8}runAsUser: 1000$/m,
        /^ {12}readOnlyRootFilesystem: true$/m,
        /^ {12}allowPrivilegeEscalation: false$/m,
        /^ {14}drop: \[ALL\]$/m,
        /^ {10}type: RuntimeDefault$/m,
        /^ {6}automountServiceAccountToken: false$/m,
        /^ {6}enableServiceLinks: false$/m
      ]) {
        expect(text).toMatch(line)
      }
    }
    expect(dockerfile).toMatch(/^USER node$/m)
    expect(composed).toMatch(/^ {4}read_only: true$/m)
    expect(composed).toMatch(/^ {4}cap_drop: \[ALL\]$/m)
  })
})

describe("the chart", () => {
  it("is of this release", () => {
    expect(read("deploy/helm/posthaste/Chart.yaml")).toContain(`\nappVersion: ${manifest.version}\n`)
    expect(objectsOf("one", "Deployment")[0]).toContain("type: Recreate")
  })

  it("asks each process on the port that every process has", () => {
    expect(deployments).toHaveLength(4)
    for (const text of deployments) {
      const [, port] = /name: POSTHASTE_METRICS_PORT\n +value: "(\d+)"/.exec(text)!
      expect(text).toContain(`- name: metrics\n              containerPort: ${port}\n`)
      const probes = [...text.matchAll(/(\w+)Probe:\n +httpGet:\n +path: (\S+)\n +port: metrics\n/g)]
      expect(probes.map(([, probe, path]) => `${probe} ${path}`)).toEqual([
        "startup /healthz",
        "liveness /healthz",
        "readiness /readyz"
      ])
    }
  })

  it("sends requests of the API to processes that have one", () => {
    const serving = objectsOf("apart", "Deployment").filter((text) => text.includes('posthaste/serves-api: "true"'))
    expect(serving).toHaveLength(1)
    expect(serving[0]).toContain('value: "api"')
    expect(objectsOf("apart", "Service")[0]).toMatch(/selector:(\n {4}.*)*\n {4}posthaste\/serves-api: "true"/)
  })

  it("takes addresses and keys from the Secret alone", () => {
    for (const text of deployments) {
      for (const name of ["DATABASE_URL", "POSTHASTE_OPERATOR_KEY", "POSTHASTE_ENCRYPTION_KEY", "AMQP_URL"]) {
        expect(text).toMatch(new RegExp(`- name: ${name}\\n +valueFrom:\\n +secretKeyRef:\\n +name: posthaste`))
      }
    }
  })

  it("writes numbers as they were given", () => {
    const [, worker] = objectsOf("apart", "Deployment")
    expect(worker).toContain('POSTHASTE_CIRCUIT_OPEN_MS\n              value: "3600000"')
    // A process's own value stands for all processes'.
    expect(worker).toContain('POSTHASTE_RETENTION_DAYS\n              value: "7"')
    expect(objectsOf("apart", "Deployment")[0]).toContain('POSTHASTE_RETENTION_DAYS\n              value: "0.5"')
  })

  it("leaves the number of pods to who scales them", () => {
    const [api, worker] = objectsOf("apart", "Deployment")
    expect(api).toContain("\n  replicas: 2\n")
    expect(worker).not.toContain("replicas:")
    const [scaler, ...more] = objectsOf("apart", "HorizontalPodAutoscaler")
    expect(more).toEqual([])
    expect(scaler).toMatch(/name: ph-posthaste-worker\n {2}minReplicas: 3\n {2}maxReplicas: 10\n/)
    const [, metric] = /metric:\n +name: (\w+)/.exec(scaler!)!
    expect(read("docs/metrics.md")).toContain(`| \`${metric}\` |`)
  })

  it("lets one pod of each process go at a time, unless told otherwise", () => {
    expect(objectsOf("one", "PodDisruptionBudget")[0]).toContain("maxUnavailable: 1")
    expect(objectsOf("apart", "PodDisruptionBudget")).toEqual([])
  })

  it("makes a ServiceMonitor only where it is wanted", () => {
    expect(objectsOf("one", "ServiceMonitor")).toEqual([])
    expect(objectsOf("apart", "ServiceMonitor")[0]).toContain("release: prometheus")
  })

  it.each([
    ["refused-no-secret", "existingSecret is required"],
    ["refused-no-projector", "processes: none has the role projector"],
    ["refused-unknown-role", "processes.0.roles.1 must be one of the following"],
    ["refused-unknown-value", "Additional property replicaCount is not allowed"],
    ["refused-key-in-settings", "settings: POSTHASTE_OPERATOR_KEY belongs into the Secret"],
    ["refused-own-value-in-settings", "settings: PORT has a value of its own in values.yaml"],
    ["refused-two-of-a-name", "processes: two are called all"],
    ["refused-fewer-than-replicas", "processes: replicasMax of all is less than its replicas"]
  ])("refuses values: %s", (name, reason) => {
    expect(renderedOf(name)).toContain(reason)
  })

  it("has a test for each file of values", () => {
    expect(cases.filter((name) => name.startsWith("refused-"))).toHaveLength(8)
    expect(good).toEqual(["apart", "one"])
  })
})
