/**
 * The order in which Vitest starts test files: those that take longest first, so that no worker is left with one of them
 * at the end, and the short ones of `unit` last. Files that nobody has listed come between, in Vitest's own order.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** From the longest down. `npm test` prints the slowest: one that belongs here and stands elsewhere is to be moved. */
const longest = [
  "simulation/simulation.test.ts",
  "end-to-end/dashboards.test.ts",
  "end-to-end/runbook.test.ts",
  "simulation/mutants.test.ts",
  "end-to-end/commandLine.test.ts",
  "adapters/eventstoredb/eventstore.test.ts",
  "end-to-end/start.test.ts",
  "end-to-end/killedWorker.test.ts",
  "end-to-end/amqpFacts.test.ts",
  "end-to-end/chaos.test.ts",
  "adapters/postgres/postgres.test.ts",
  "end-to-end/amqpCommands.test.ts",
  "end-to-end/circuit.test.ts",
  "end-to-end/httpTarget.test.ts",
  "adapters/channels/amqp/AmqpChannel.test.ts",
  "end-to-end/backup.test.ts",
  "end-to-end/eventstore.test.ts",
  "end-to-end/erasure.test.ts",
  "end-to-end/amqpTargets.test.ts",
  "end-to-end/fanOut.test.ts",
  "sdk/server/saga.test.ts",
  "servers/rabbitmq.test.ts",
  "adapters/embedded-postgres/EmbeddedPostgres.test.ts",
  "adapters/eventstoredb/failures.test.ts",
  "adapters/eventstoredb/start.test.ts",
  "end-to-end/metrics.test.ts",
  "sdk/server/package.test.ts",
  "end-to-end/replay.test.ts"
].map((file) => join(import.meta.dirname, file))

for (const file of longest)
  if (!existsSync(file)) throw new Error(`${file} is listed in longestFirst.ts and is not there`)

export class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const rank = ({ moduleId, project }: TestSpecification) => {
      const listed = longest.indexOf(moduleId)
      return listed >= 0 ? listed : project.name === "unit" ? longest.length + 1 : longest.length
    }
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}
