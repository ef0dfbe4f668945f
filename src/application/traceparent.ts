/** W3C's `traceparent`. A malformed one counts as absent. */
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

export interface TraceContext {
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
}

export const traceContextOf = (text: string | null | undefined): TraceContext | null => {
  const found = FORM.exec(text?.trim() ?? "")
  if (found === null) return null
  const [, version, traceId, spanId, flags, more] = found
  if (version === "ff" || (version === "00" && more !== undefined)) return null
  if (/^0+$/.test(traceId!) || /^0+$/.test(spanId!)) return null
  return { traceId: traceId!, spanId: spanId!, sampled: (Number.parseInt(flags!, 16) & 1) === 1 }
}

export const traceparentOf = ({ traceId, spanId, sampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`

export const wellFormed = (text: string | null | undefined): string | null => {
  const context = traceContextOf(text)
  return context === null ? null : traceparentOf(context)
}

/** The id of a sampled trace, which alone is worth naming. */
export const keptTraceOf = (traceparent: string | undefined): string | null => {
  if (traceparent === undefined) return null
  const context = traceContextOf(traceparent)
  return context?.sampled === true ? context.traceId : null
}
