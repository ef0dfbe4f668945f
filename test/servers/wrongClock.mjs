// Loaded before a program: the clock of its machine is wrong by WRONG_CLOCK_MS. The monotonic clock is right, as on any machine.
const by = Number(process.env.WRONG_CLOCK_MS)
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
