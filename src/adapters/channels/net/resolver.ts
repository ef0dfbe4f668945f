/**
 * Resolves host names on the event loop: `dns.lookup` shares four threads, and four silent nameservers stopped all new
 * connections. Callers of a name share a question; answers are kept for their TTL within bounds. It reads `/etc/hosts`
 * and the search domains of `/etc/resolv.conf`.
 */
import { Resolver } from "node:dns"
import { readFileSync } from "node:fs"
import { isIP } from "node:net"
import { areUsedUp, lackOfDescriptors } from "./sockets.ts"

export interface Address {
  readonly address: string
  readonly family: number
}

/** The callback is called once, after the call has returned. */
export type Resolve = (
  hostname: string,
  callback: (error: Error | null, addresses: ReadonlyArray<Address>) => void
) => void

const DEADLINE_MS = 5_000
const TRY_MS = 1_500
/** Wait for the second family once the first has answered. */
const OTHER_FAMILY_MS = 300
const KEPT_MIN_MS = 1_000
const KEPT_MAX_MS = 60_000
const FAILURE_KEPT_MS = 1_000
const KEPT_NAMES = 10_000
const FILES_MS = 5_000

interface Options {
  /** Such as `127.0.0.1:53`; absent: the system's. */
  readonly servers?: ReadonlyArray<string>
  readonly hosts?: string
  readonly resolvConf?: string
  readonly now?: () => number
  readonly deadlineMs?: number
  readonly tryMs?: number
  readonly otherFamilyMs?: number
}

interface Kept {
  readonly until: number
  readonly error: Error | null
  readonly addresses: ReadonlyArray<Address>
}

type Callback = Parameters<Resolve>[1]

/** Null when no descriptor is left to read it. */
const textOf = (file: string): string | null => {
  try {
    return readFileSync(file, "utf8")
  } catch (error) {
    return areUsedUp(error) ? null : ""
  }
}

const wordsOf = (text: string): ReadonlyArray<ReadonlyArray<string>> =>
  text.split("\n").map((line) =>
    line
      .replace(/[#;].*/, "")
      .trim()
      .split(/\s+/)
  )

const hostsOf = (text: string): ReadonlyMap<string, ReadonlyArray<Address>> => {
  const hosts = new Map<string, ReadonlyArray<Address>>()
  for (const [address = "", ...names] of wordsOf(text)) {
    const family = isIP(address)
    if (family === 0) continue
    for (const name of names) {
      const key = name.toLowerCase()
      hosts.set(key, [...(hosts.get(key) ?? []), { address, family }])
    }
  }
  return hosts
}

interface Search {
  readonly domains: ReadonlyArray<string>
  /** Names with fewer dots are completed before they are asked as they are. */
  readonly ndots: number
}

const searchOf = (text: string): Search => {
  const lines = wordsOf(text)
  const options = lines.filter(([word]) => word === "options").flatMap((words) => words.slice(1))
  const ndots = options.findLast((option) => option.startsWith("ndots:"))?.slice("ndots:".length)
  return {
    domains: lines.findLast(([word]) => word === "search" || word === "domain")?.slice(1) ?? [],
    ndots: ndots === undefined ? 1 : Number(ndots)
  }
}

const completed = (name: string, { domains, ndots }: Search): ReadonlyArray<string> => {
  const longer = domains.map((domain) => `${name}.${domain}`)
  return name.split(".").length - 1 < ndots ? [...longer, name] : [name, ...longer]
}

const notFound = (hostname: string) => Object.assign(new Error(`${hostname} has no address`), { code: "ENOTFOUND" })

interface Part {
  readonly addresses: ReadonlyArray<Address>
  readonly ttl: number
  readonly error: NodeJS.ErrnoException | null
}

/** The nameserver answered that the name or family has no address. */
const isAbsent = (error: NodeJS.ErrnoException | null) => error?.code === "ENOTFOUND" || error?.code === "ENODATA"

export const makeResolver = ({
  servers,
  hosts: hostsFile = "/etc/hosts",
  resolvConf = "/etc/resolv.conf",
  now = () => performance.now(),
  deadlineMs = DEADLINE_MS,
  tryMs = TRY_MS,
  otherFamilyMs = OTHER_FAMILY_MS
}: Options = {}): Resolve => {
  const kept = new Map<string, Kept>()
  const pending = new Map<string, Array<Callback>>()
  const read = (before: { readonly hosts: string; readonly search: string }) => {
    const texts = { hosts: textOf(hostsFile) ?? before.hosts, search: textOf(resolvConf) ?? before.search }
    return { texts, hosts: hostsOf(texts.hosts), search: searchOf(texts.search), readAt: now() }
  }
  let files = read({ hosts: "", search: "" })

  const filesNow = () => {
    if (now() - files.readAt > FILES_MS) files = read(files.texts)
    return files
  }

  const keep = (name: string, found: Kept) => {
    kept.delete(name)
    kept.set(name, found)
    // Maps keep insertion order: drops the oldest question.
    if (kept.size > KEPT_NAMES) kept.delete(kept.keys().next().value!)
  }

  /** Asks for both families. `done` is called once, with the parts that came. */
  const askOnce = (name: string, deadline: number, done: (parts: ReadonlyArray<Part>) => void) => {
    const resolver = new Resolver({ timeout: tryMs, tries: 2 })
    if (servers !== undefined) resolver.setServers(servers)
    const parts: Array<Part> = []
    let timer = setTimeout(() => end(), Math.max(deadline - now(), 0))
    let ended = false
    const end = () => {
      if (ended) return
      ended = true
      clearTimeout(timer)
      resolver.cancel()
      done(parts)
    }
    const part =
      (family: 4 | 6) => (error: NodeJS.ErrnoException | null, records?: Array<{ address: string; ttl: number }>) => {
        if (ended) return
        const addresses = (records ?? []).map(({ address }) => ({ address, family }))
        parts.push({ addresses, ttl: Math.min(...(records ?? []).map(({ ttl }) => ttl)), error })
        if (parts.length === 2) return end()
        if (addresses.length === 0) return
        clearTimeout(timer)
        timer = setTimeout(end, otherFamilyMs)
      }
    resolver.resolve4(name, { ttl: true }, part(4))
    resolver.resolve6(name, { ttl: true }, part(6))
  }

  /** Answers for the first name that has addresses. */
  const ask = (names: ReadonlyArray<string>, deadline: number, done: (found: Kept) => void) => {
    const [name, ...others] = names
    askOnce(name!, deadline, (parts) => {
      // IPv4 first, for hosts without a way to IPv6.
      const found = parts.filter(({ addresses }) => addresses.length > 0)
      const addresses = found.flatMap(({ addresses }) => addresses).toSorted((a, b) => a.family - b.family)
      if (addresses.length > 0) {
        const ttlMs = Math.min(...found.map(({ ttl }) => ttl)) * 1_000
        return done({ until: now() + Math.min(Math.max(ttlMs, KEPT_MIN_MS), KEPT_MAX_MS), error: null, addresses })
      }
      const failure = parts.find(({ error }) => error !== null && !isAbsent(error))?.error
      if (others.length > 0 && failure === undefined && parts.length === 2) return ask(others, deadline, done)
      const unanswered = failure ?? (parts.length < 2 ? new Error(`no nameserver has answered for ${name}`) : null)
      // Without descriptors a question fails as if refused.
      const error = unanswered === null ? notFound(name!) : (lackOfDescriptors() ?? unanswered)
      done({ until: now() + FAILURE_KEPT_MS, error, addresses: [] })
    })
  }

  return (hostname, callback) => {
    const name = hostname.toLowerCase().replace(/\.$/, "")
    const { hosts, search } = filesNow()
    const written = hosts.get(name)
    if (written !== undefined) return queueMicrotask(() => callback(null, written))
    // RFC 6761: never sent to a nameserver.
    if (name === "invalid" || name.endsWith(".invalid")) return queueMicrotask(() => callback(notFound(hostname), []))
    const known = kept.get(name)
    if (known !== undefined && known.until > now()) return queueMicrotask(() => callback(known.error, known.addresses))
    const others = pending.get(name)
    if (others !== undefined) return void others.push(callback)
    pending.set(name, [callback])
    ask(hostname.endsWith(".") ? [name] : completed(name, search), now() + deadlineMs, (found) => {
      keep(name, found)
      const callbacks = pending.get(name)!
      pending.delete(name)
      for (const called of callbacks) called(found.error, found.addresses)
    })
  }
}
