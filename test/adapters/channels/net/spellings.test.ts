/**
 * Every way to spell an address that may not be called, beside listeners that count who connects. What is spelled is this machine
 * itself, where the listeners are, or an address that is nowhere here; so every try of a socket in this process is counted too, whatever
 * address it is for.
 */
import { randomUUID } from "node:crypto"
import net from "node:net"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as AmqpChannel from "../../../../src/adapters/channels/amqp/AmqpChannel.ts"
import type { Tried } from "../../../../src/adapters/channels/net/attempt.ts"
import { type EgressProxy, parseEgressProxy } from "../../../../src/adapters/channels/net/egressProxy.ts"
import { checkUrl } from "../../../../src/adapters/channels/net/requestPolicy.ts"
import { makeResolver, type Resolve } from "../../../../src/adapters/channels/net/resolver.ts"
import type { OutboundMessage } from "../../../../src/application/ports/Channels.ts"
import { DestinationId, MessageId, OrgId } from "../../../../src/domain/ids.ts"
import { destinationOf, senderKnowing } from "../../../contracts/destinations/samples.ts"
import { nameserver, type Zone } from "./nameserver.ts"
import { answer, receiver, until } from "./receiver.ts"
import { destinationAt, posting } from "./trying.ts"

/** Tries of sockets, by the address they were for. */
const attempts: Array<string> = []
const { connect } = net.Socket.prototype
beforeAll(() => {
  net.Socket.prototype.connect = function (this: net.Socket, ...given: ReadonlyArray<unknown>) {
    this.on("connectionAttempt", (address, port) => attempts.push(`${address} ${port}`))
    return Reflect.apply(connect, this, given)
  } as typeof connect
})
afterAll(() => {
  net.Socket.prototype.connect = connect
})
beforeEach(() => {
  attempts.length = 0
})

type Four = readonly [number, number, number, number]

const oct = (n: number) => `0${n.toString(8)}`
const hex = (n: number) => `0x${n.toString(16)}`
const wide = (text: string) =>
  [...text].map((letter) => String.fromCodePoint(letter.codePointAt(0)! - 0x21 + 0xff01)).join("")
const percent = (text: string) =>
  [...text].map((letter) => `%${letter.codePointAt(0)!.toString(16).padStart(2, "0")}`).join("")
const circled = (text: string) =>
  text.replace(/\d/g, (digit) => (digit === "0" ? "⓪" : String.fromCodePoint(0x2460 + Number(digit) - 1)))
const group = (a: number, b: number) => ((a << 8) | b).toString(16)
const all = <A>(...lists: ReadonlyArray<ReadonlyArray<A>>): ReadonlyArray<ReadonlyArray<A>> =>
  lists.reduce<ReadonlyArray<ReadonlyArray<A>>>(
    (made, list) => made.flatMap((some) => list.map((one) => [...some, one])),
    [[]]
  )

/** Hosts of a URL that are an IPv4 address. */
const spelledV4 = ([a, b, c, d]: Four): ReadonlyArray<string> => {
  const number = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
  const dotted = [a, b, c, d].join(".")
  const forms = (n: number) => [String(n), oct(n), hex(n)]
  const mixed = all(forms(a), forms(b), forms(c), forms(d)).map((parts) => parts.join("."))
  const short = [
    ...all(forms(a), forms((b << 16) | (c << 8) | d)),
    ...all(forms(a), forms(b), forms((c << 8) | d))
  ].map((parts) => parts.join("."))
  const whole = [
    ...forms(number),
    `0X${number.toString(16).toUpperCase()}`,
    `0000${oct(number)}`,
    `0x0000${number.toString(16)}`
  ]
  const padded = [a, b, c, d].map((n) => `000${n.toString(8)}`).join(".")
  const letters = [dotted, ...whole.slice(0, 1)].flatMap((text) => [
    wide(text),
    circled(text),
    percent(text),
    percent(text).toUpperCase().replaceAll("%", "%"),
    `${text}.`,
    `${text}%2e`,
    `${text.slice(0, 1)}\t${text.slice(1)}`,
    `${text.slice(0, 1)}\n${text.slice(1)}`,
    `${text.slice(0, 1)}\u00ad${text.slice(1)}`,
    `${text.slice(0, 1)}\u200b${text.slice(1)}`,
    `${text.slice(0, 1)}\u2060${text.slice(1)}`
  ])
  const stops = ["。", "．", "｡", "%e3%80%82"].map((stop) => [a, b, c, d].join(stop))
  return [...mixed, ...short, ...whole, padded, ...letters, ...stops]
}

/** Hosts that carry an IPv4 address in an IPv6 one. */
const embeddedV4 = ([a, b, c, d]: Four): ReadonlyArray<string> => {
  const [high, low] = [group(a, b), group(c, d)]
  const [notHigh, notLow] = [group(a ^ 255, b ^ 255), group(c ^ 255, d ^ 255)]
  const dotted = [a, b, c, d].join(".")
  const inside = [
    `::ffff:${dotted}`,
    `::ffff:${high}:${low}`,
    `::FFFF:${high.toUpperCase()}:${low}`,
    `0:0:0:0:0:ffff:${dotted}`,
    `0000:0000:0000:0000:0000:ffff:${high.padStart(4, "0")}:${low.padStart(4, "0")}`,
    `::0:0:ffff:${high}:${low}`,
    `::${dotted}`,
    `::${high}:${low}`,
    `0::0:${high}:${low}`,
    `::ffff:0:${dotted}`,
    `::ffff:0:${high}:${low}`,
    `64:ff9b::${dotted}`,
    `64:FF9B::${high}:${low}`,
    `0064:ff9b:0:0:0:0:${high}:${low}`,
    `64:ff9b:1::${dotted}`,
    `64:ff9b:1:ffff::${high}:${low}`,
    `2002:${high}:${low}::`,
    `2002:${high}:${low}::${high}:${low}`,
    `2001::${notHigh}:${notLow}`,
    `2001:0:${high}:${low}:0:0:${notHigh}:${notLow}`,
    `fe80::5efe:${dotted}`,
    `fe80::200:5efe:${high}:${low}`
  ]
  return inside.map((text) => `[${text}]`)
}

const loopback: Four = [127, 0, 0, 1]
const v4: Readonly<Record<string, Four>> = {
  loopback,
  "the rest of loopback": [127, 1, 2, 3],
  "any address": [0, 0, 0, 0],
  "a private network": [10, 0, 0, 1],
  "another private network": [172, 16, 5, 4],
  "a home's network": [192, 168, 0, 1],
  "a carrier's network": [100, 64, 0, 1],
  "metadata of AWS, Azure, Google, OpenStack, DigitalOcean": [169, 254, 169, 254],
  "metadata of containers at AWS": [169, 254, 170, 2],
  "metadata of pods at AWS": [169, 254, 170, 23],
  "metadata of Tencent": [169, 254, 0, 23],
  "metadata of Scaleway": [169, 254, 42, 42],
  "metadata of Alibaba": [100, 100, 100, 200],
  "metadata of Oracle": [192, 0, 0, 192],
  "the wire server of Azure": [168, 63, 129, 16],
  "a group": [224, 0, 0, 1],
  everybody: [255, 255, 255, 255]
}
const v6 = [
  ...["::1", "0:0:0:0:0:0:0:1", "0000:0000:0000:0000:0000:0000:0000:0001", "::0001", "0::1", "::0:1", "::0.0.0.1"],
  ...[
    "::",
    "0:0:0:0:0:0:0:0",
    "0::0",
    "fc00::1",
    "fd00::1",
    "FD12:3456:789A::1",
    "fe80::1",
    "FEBF::1",
    "fec0::1",
    "ff02::1"
  ],
  ...["fd00:ec2::254", "FD00:0EC2:0:0::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42", "fe80::a9fe:a9fe"],
  ...["100::1", "2001:db8::1", "2001:10::1", "3fff::1", "5f00::1", "4000::1"]
].map((text) => `[${text}]`)
const names = [
  ...[
    "localhost",
    "LOCALHOST",
    "LocalHost",
    "localhost.",
    "ｌｏｃａｌｈｏｓｔ",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "%6c%6fcalhost",
    "local\thost"
  ],
  ...["a.localhost", "a.b.LOCALHOST.", "localhost.localdomain", "ip6-localhost", "ip6-loopback", "lo\u00adcalhost"]
]

/** Around a host: what looks as if the URL were another's, and still is its own. */
const around = (host: string, port: number): ReadonlyArray<string> => [
  `http://${host}:${port}/`,
  `HTTP://${host}:${port}/`,
  `https://${host}:${port}/`,
  `http:\\\\${host}:${port}\\`,
  `http:/${host}:${port}/`,
  `http:${host}:${port}/`,
  `http:////${host}:${port}/`,
  `http://${host}:0${port}/`,
  ` \t http://${host}:${port}/`,
  `http://${host}:${port}/#@shop.example/`,
  `http://${host}:${port}/?@shop.example/`,
  `http://${host}:${port}\\@shop.example/`,
  `http://shop.example@${host}:${port}/`,
  `http://shop.example:443@${host}:${port}/`,
  `http://shop.example%2f@${host}:${port}/`,
  `http://shop.example%00@${host}:${port}/`,
  `http://:@${host}:${port}/`,
  `http://@${host}:${port}/`
]

const urlsOf = (port: number): ReadonlyArray<string> => {
  const hosts = [...Object.values(v4).flatMap((four) => [...spelledV4(four), ...embeddedV4(four)]), ...v6, ...names]
  return [
    ...new Set([
      ...hosts.map((host) => `http://${host}:${port}/`),
      ...["127.0.0.1", "2130706433", "[::1]", "[::ffff:7f00:1]", "localhost", "169.254.169.254"].flatMap((host) =>
        around(host, port)
      )
    ])
  ]
}

/** Local names as the hosts file of many systems has them, and a search domain that leads here. */
const local: Resolve = (_name, callback) =>
  queueMicrotask(() =>
    callback(null, [
      { address: "127.0.0.1", family: 4 },
      { address: "::1", family: 6 }
    ])
  )

/** Listens on all addresses of this machine, also on those of IPv6 where there are any. */
const everywhere = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly connects: () => number; readonly close: () => void }>((resume) => {
    let connects = 0
    const open = new Set<net.Socket>()
    const server = net.createServer((socket) => {
      connects += 1
      socket.on("error", () => {}).on("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"))
      open.add(socket)
    })
    const listening = () =>
      resume(
        Effect.succeed({
          port: (server.address() as net.AddressInfo).port,
          connects: () => connects,
          close: () => {
            server.close()
            for (const socket of open) socket.destroy()
          }
        })
      )
    server.once("error", () => server.listen(0, "0.0.0.0", listening))
    server.listen({ port: 0, host: "::", ipv6Only: false }, listening)
  }),
  ({ close }) => Effect.sync(close)
)

const org = OrgId.make("acme")
const message: OutboundMessage = {
  messageId: MessageId.make(randomUUID()),
  orgId: org,
  destination: DestinationId.make(randomUUID()),
  ...{ to: "target", epoch: 1, attempt: 1, eventType: null, templateCode: null, correlationId: null, body: "{}" }
}

const FORBIDDEN = "forbidden_address"
const said = ({ outcome }: Pick<Tried, "outcome">): string =>
  outcome.type === "Accepted" ? "taken" : outcome.error.code
const SPELLINGS = urlsOf(8_080).filter((url) => URL.canParse(url)).length
const CLOUDS = [
  "0.0.0.0/0,::/0",
  "169.254.0.0/16,100.64.0.0/10,168.63.129.16/32,192.0.0.0/24,fd00::/8,fe80::/10,64:ff9b::/32,2002::/16,::/96"
]

describe("an address that may not be called", () => {
  it("is spelled in more than three hundred ways", () => expect(SPELLINGS).toBeGreaterThanOrEqual(300))

  it.live(`is connected to 0 times, however it is spelled (${SPELLINGS} ways)`, () =>
    Effect.gen(function* () {
      const far = yield* everywhere
      const post = yield* posting({ networks: "", resolve: local })
      const urls = urlsOf(far.port)
      let tried = 0
      for (const url of urls) {
        // What is no URL, or names a user, is refused when it is set; the rest must be refused by its address.
        if (!URL.canParse(url)) {
          expect([url, checkUrl(url)]).toEqual([url, "not a URL"])
          continue
        }
        tried += 1
        expect([url, said(yield* post(destinationAt(url)))]).toEqual([url, FORBIDDEN])
      }
      yield* Effect.sleep("20 millis")
      expect({ tried, connects: far.connects(), attempts }).toEqual({ tried: SPELLINGS, connects: 0, attempts: [] })
    })
  )

  it.live("is connected to 0 times as a broker, whose URL nobody normalises", () =>
    Effect.gen(function* () {
      const far = yield* everywhere
      const channel = AmqpChannel.channel({ allowedNetworks: [], exemptions: [] }, local)
      const hosts = [loopback, [169, 254, 169, 254] as const].flatMap((four) => [
        ...spelledV4(four),
        ...embeddedV4(four)
      ])
      const urls = [...hosts, ...v6, ...names].flatMap((host) => [
        `amqp://${host}:${far.port}/`,
        `amqps://shop.example%40@${host}:${far.port}/`
      ])
      let tried = 0
      for (const url of urls.filter((one) => URL.canParse(one))) {
        const destination = destinationOf(channel, org, { url, exchange: "e", timeoutMs: 60_000 })
        const sender = yield* senderKnowing(channel, () =>
          Effect.succeed({ destination, secrets: {}, previousSecrets: [] })
        )
        tried += 1
        expect([url, said(yield* sender.send(message))]).toEqual([
          url,
          expect.stringMatching(/^(forbidden_address|amqp_target_invalid)$/)
        ])
      }
      expect(tried).toBeGreaterThanOrEqual(300)
      expect([far.connects(), attempts]).toEqual([0, []])
    })
  )

  it.live("would have been connected to, if it had been allowed", () =>
    Effect.gen(function* () {
      const far = yield* everywhere
      const post = yield* posting({ networks: "127.0.0.0/8,0.0.0.0/8", resolve: local })
      const urls = [...new Set(spelledV4(loopback))]
        .map((host) => `http://${host}:${far.port}/`)
        .filter((url) => URL.canParse(url))
      for (const url of urls)
        expect([url, said(yield* post(destinationAt(url, { pool: url })))]).toEqual([url, "taken"])
      expect(attempts.length).toBeGreaterThan(0)
      expect(far.connects()).toBe(urls.length)
    })
  )

  it.live("gets no byte where the system puts it in the place of an address that may be called", () =>
    Effect.gen(function* () {
      const bytes: Array<string> = []
      const far = yield* receiver({
        connection: (socket) => void socket.on("data", (chunk) => bytes.push(String(chunk)))
      })
      // Whoever connects to 0.0.0.0 is connected to 127.0.0.1.
      const post = yield* posting({ networks: "0.0.0.0/8" })
      for (const scheme of ["http", "https"]) {
        const destination = destinationAt(`${scheme}://0.0.0.0:${far.port}/`)
        expect(said(yield* post(destination))).toBe(FORBIDDEN)
      }
      yield* until(() => far.connections() === 2 && far.open.size === 0)
      expect(bytes).toEqual([])
    })
  )

  it.live.each(CLOUDS)(
    "is connected to 0 times where clouds hand out credentials, although all is open (%s)",
    (networks) =>
      Effect.gen(function* () {
        const post = yield* posting({ networks, resolve: local })
        const clouds = Object.entries(v4).flatMap(([name, four]) => (/metadata|Azure/.test(name) ? [four] : []))
        const hosts = [
          // Scaleway's is as any other of its network.
          ...clouds
            .filter((four) => four.join(".") !== "169.254.42.42")
            .flatMap((four) => [...spelledV4(four), ...embeddedV4(four)]),
          ...["[fd00:ec2::254]", "[FD00:0EC2:0:0::254]", "[fd00:ec2::23]", "[fd20:ce::254]", "[fe80::a9fe:a9fe]"]
        ]
        // Teredo carries its client turned round, and is never opened by this list; ISATAP under another prefix is only a local address.
        const urls = hosts
          .filter((host) => !/^\[(2001:|fe80::200)/.test(host))
          .map((host) => `http://${host}/`)
          .filter((url) => URL.canParse(url))
        for (const url of urls) expect([url, said(yield* post(destinationAt(url)))]).toEqual([url, FORBIDDEN])
        expect(attempts).toEqual([])
      })
  )

  it.live("is not reached by a name whose answers are mixed, or change from one question to the next", () =>
    Effect.gen(function* () {
      const far = yield* everywhere
      const [good, bad] = ["192.0.2.1", "127.0.0.1"]
      const zone: Zone = {
        "first.test": { a: [bad, "93.184.216.34"] },
        "last.test": { a: ["93.184.216.34", bad] },
        "among.test": { a: [...Array.from({ length: 20 }, (_, n) => `93.184.216.${n + 1}`), bad] },
        "six.test": { a: ["93.184.216.34"], aaaa: "00000000000000000000000000000001" },
        "mapped.test": { a: ["93.184.216.34"], aaaa: "00000000000000000000ffff7f000001" },
        "nat64.test": { aaaa: "0064ff9b00000000000000007f000001" },
        "only.test": { a: [bad] },
        "zero.test": { a: ["0.0.0.0"] },
        "documentation.test": { a: [good] }
      }
      const { servers } = yield* Effect.promise(() => nameserver(zone))
      const resolve = makeResolver({ servers, hosts: "/dev/null", resolvConf: "/dev/null" })
      const post = yield* posting({ networks: "", resolve })
      for (const name of Object.keys(zone)) {
        expect([name, said(yield* post(destinationAt(`http://${name}:${far.port}/`)))]).toEqual([name, FORBIDDEN])
      }
      expect([far.connects(), attempts]).toEqual([0, []])
    })
  )

  it.live("is not reached by a name that was good when it was judged before", () =>
    Effect.gen(function* () {
      const open = yield* receiver({
        request: (socket) => {
          answer(socket, 200, { connection: "close" })
          socket.end()
        }
      })
      const inner = yield* everywhere
      let now = 0
      const answers = ["127.0.0.1", "127.0.0.2", "10.0.0.1", "169.254.169.254", "0.0.0.0"]
      const { servers, asked } = yield* Effect.promise(() =>
        nameserver({ "rebind.test": (before) => ({ a: [answers[before % answers.length]!], ttl: 0 }) })
      )
      const resolve = makeResolver({ servers, hosts: "/dev/null", resolvConf: "/dev/null", now: () => now })
      const post = yield* posting({ networks: "", exempt: open.port, resolve })
      const outcomes: Array<string> = []
      for (let round = 0; round < 2 * answers.length; round++) {
        outcomes.push(said(yield* post(destinationAt(`http://rebind.test:${open.port}/`))))
        // Another port of the address that is open at one.
        expect(said(yield* post(destinationAt(`http://rebind.test:${inner.port}/`)))).toBe(FORBIDDEN)
        now += 5_000
      }
      const round = ["taken", ...Array.from({ length: answers.length - 1 }, () => FORBIDDEN)]
      expect(outcomes).toEqual([...round, ...round])
      expect(asked.filter((question) => question.startsWith("A ")).length).toBe(2 * answers.length)
      expect(inner.connects()).toBe(0)
      expect(attempts.filter((attempt) => attempt !== `127.0.0.1 ${open.port}`)).toEqual([])
    })
  )

  it.live("is not reached by anything that a receiver answers", () =>
    Effect.gen(function* () {
      const inner = yield* everywhere
      const places = ["127.0.0.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "localhost"].flatMap(
        (host) => [`http://${host}:${inner.port}/`, `//${host}:${inner.port}/`]
      )
      const answers = places.flatMap((place) => [
        ...[300, 301, 302, 303, 305, 307, 308].map((status) => ({ status, headers: { location: place } })),
        { status: 201, headers: { location: place, "content-location": place } },
        { status: 200, headers: { refresh: `0; url=${place}`, link: `<${place}>; rel=preload` } },
        { status: 200, headers: { "alt-svc": `h2="127.0.0.1:${inner.port}"; ma=60` } },
        { status: 401, headers: { "www-authenticate": `Bearer realm="${place}"` } },
        { status: 503, headers: { location: place, "retry-after": "0" } }
      ])
      let nth = 0
      const open = yield* receiver({
        request: (socket) => {
          const { status, headers } = answers[nth++]!
          answer(socket, status, headers as unknown as Record<string, string>)
        }
      })
      const post = yield* posting({ networks: "", exempt: open.port, resolve: local })
      for (const _ of answers) yield* post(destinationAt(open.url))
      expect(open.requests.length).toBe(answers.length)
      expect(inner.connects()).toBe(0)
      expect(attempts.filter((attempt) => attempt !== `127.0.0.1 ${open.port}`)).toEqual([])
    })
  )

  it.live("is asked for of no proxy, whether it is set here or in the environment", () =>
    Effect.gen(function* () {
      const asked = yield* everywhere
      const at = `http://127.0.0.1:${asked.port}`
      const { success: proxy } = parseEgressProxy(at) as { readonly success: EgressProxy }
      const variables = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
      const before = variables.map((name) => [name, process.env[name]] as const)
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          for (const name of variables) process.env[name] = at
        }),
        () =>
          Effect.sync(() => {
            for (const [name, value] of before) {
              if (value === undefined) delete process.env[name]
              else process.env[name] = value
            }
          })
      )
      const hosts = [
        ...spelledV4(loopback),
        ...spelledV4([169, 254, 169, 254]),
        ...embeddedV4([10, 0, 0, 1]),
        ...v6,
        ...names
      ]
      const urls = hosts.map((host) => `http://${host}:9/`).filter((url) => URL.canParse(url))
      for (const way of [proxy, null]) {
        const post = yield* posting({ networks: "", resolve: local, ...(way !== null && { proxy: way }) })
        for (const url of urls) expect([url, said(yield* post(destinationAt(url)))]).toEqual([url, FORBIDDEN])
      }
      expect([asked.connects(), attempts]).toEqual([0, []])
    })
  )
})
