/** A process that runs a saga and is killed while it awaits its nth statement: `dyingSaga.ts <database> <kind> <order> <n>`. */
import pg from "pg"
import { fiveSteps, longRunning } from "./fiveSteps.ts"

const [url, kind, order = "", n] = process.argv.slice(2)

const connected = new pg.Client({ connectionString: url, application_name: "dying" })
await connected.connect()

let statements = 0
const client = {
  getTransactionStatus: () => connected.getTransactionStatus(),
  query: (text: string, values?: Array<unknown>) => {
    const answer = connected.query(text, values)
    // It has left by then, and the server may or may not have done it.
    if (++statements === Number(n)) setImmediate(() => process.kill(process.pid, "SIGKILL"))
    return answer
  }
}

if (kind === "execute") await fiveSteps.execute(client, { order }, { id: order })
else {
  await longRunning().start(client, { order }, { id: order })
  await longRunning().deliver(client, { sagaId: order, name: "paid", messageId: "m-1", data: { amount: 5 } })
}
await connected.end()
