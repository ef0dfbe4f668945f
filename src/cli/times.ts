/** Times as people write them, in the machine's zone. */

const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const days: Readonly<Record<string, number>> = { today: 0, yesterday: -1, tomorrow: 1 }

/** The ISO text of `2h` (ago or ahead), `15:02`, `yesterday 15:02` and `2026-11-18 15:02`; any other text stays. */
export const timeOf = (text: string, now: Date, direction: "ago" | "ahead" = "ago"): string => {
  const [, count, unit] = /^(\d{1,6}(?:\.\d+)?)([smhd])$/.exec(text) ?? []
  if (unit !== undefined) {
    return new Date(now.getTime() + Number(count) * units[unit]! * (direction === "ago" ? -1 : 1)).toISOString()
  }
  const [, day = "today", hours, minutes, seconds = "0"] =
    /^(?:(today|yesterday|tomorrow|\d{4}-\d\d-\d\d)[ T])?(\d{1,2}):(\d\d)(?::(\d\d))?$/.exec(text) ?? []
  if (hours === undefined) return text
  const [year, month, date] = day.split("-").map(Number)
  const at =
    day in days
      ? new Date(now.getFullYear(), now.getMonth(), now.getDate() + days[day]!)
      : new Date(year!, month! - 1, date)
  at.setHours(Number(hours), Number(minutes), Number(seconds), 0)
  return at.toISOString()
}
