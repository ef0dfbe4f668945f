/** Whether everything that was sent arrived, by id. A figure whose reconciliation is not sound means nothing. */

export interface Arrivals {
  /** When each id arrived first, in that order. */
  readonly firstArrivals: ReadonlyMap<string, number>
  /** Requests, including repeated ones. */
  readonly received: number
  readonly forged: number
  readonly wrongSize: number
  readonly unreadable: number
}

export interface Reconciliation {
  readonly sent: number
  readonly lost: number
  /** Arrived, but never sent. */
  readonly strangers: number
  readonly duplicates: number
  readonly forged: number
  readonly wrongSize: number
  readonly unreadable: number
}

export const reconcile = (ids: ReadonlyArray<string>, arrivals: Arrivals): Reconciliation => {
  const sent = new Set(ids)
  let arrived = 0
  for (const id of sent) if (arrivals.firstArrivals.has(id)) arrived++
  return {
    sent: sent.size,
    lost: sent.size - arrived,
    strangers: arrivals.firstArrivals.size - arrived,
    duplicates: arrivals.received - arrivals.firstArrivals.size,
    forged: arrivals.forged,
    wrongSize: arrivals.wrongSize,
    unreadable: arrivals.unreadable
  }
}

/** Duplicates are allowed (delivery is at least once) and shown; nothing else is. */
export const isSound = (r: Reconciliation): boolean =>
  r.sent > 0 && r.lost + r.strangers + r.forged + r.wrongSize + r.unreadable === 0
