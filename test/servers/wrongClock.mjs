// Loaded before a program: the clock of its machine is wrong by WRONG_CLOCK_MS, or by what the file WRONG_CLOCK_FILE says at
// the moment. The monotonic clock is right, as on any machine.
import { readFileSync } from "node:fs"

const file = process.env.WRONG_CLOCK_FILE
const read = () => Number(file === undefined ? process.env.WRONG_CLOCK_MS : readFileSync(file, "utf8"))
let by = read()
if (file !== undefined) setInterval(() => (by = read()), 100).unref()

const RealDate = Date
const now = () => RealDate.now() + by
globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(now())
    else super(...args)
  }
  static now() {
    return now()
  }
}
