/** How many times longer a piece of work takes here and now than if this machine did nothing else: 1 on a quiet one. */
export const slowdown = (): number => {
  const [since, used] = [performance.now(), process.cpuUsage()]
  let spent = 0
  while (spent < 20) {
    const { user, system } = process.cpuUsage(used)
    spent = (user + system) / 1_000
  }
  return Math.max(1, (performance.now() - since) / spent)
}
