/** Settings of an AMQP target: an exchange of an org's RabbitMQ. */
import { Schema } from "effect"
import type { SecretField } from "../../../application/ports/Channels.ts"
import type { DestinationSettings } from "../../../application/ports/Destinations.ts"
import { brokerText, commonSettings, type Setting, text } from "../../../application/ports/fields.ts"
import { type AddressGuard, literalAddress } from "../net/addressGuard.ts"
import { checkAddress } from "../net/requestPolicy.ts"

export interface AmqpTargetSettings extends DestinationSettings {
  /** Without the password, which is a secret. */
  readonly url: string
  /** Empty: the broker's default exchange, whose routing keys are names of queues. */
  readonly exchange: string
  readonly routingKey: string
  /** Decides about a message that the broker may have taken without confirming. */
  readonly unconfirmed: "resend" | "deadLetter"
}

export const settings = {
  url: {
    schema: text(2048).annotate({
      description:
        "amqp://user:password@host:5672/vhost, or amqps:. The password is stored encrypted and left out when it is read. It must be given again with another scheme, user, host or port."
    })
  },
  exchange: {
    schema: brokerText.annotate({
      description: "It must exist. Empty: the broker's default exchange, whose routing keys are names of queues."
    })
  },
  routingKey: { schema: brokerText.annotate({ description: "Of messages that bring none." }), default: "" },
  unconfirmed: {
    schema: Schema.Literals(["resend", "deadLetter"]).annotate({
      description:
        "Of a message that the broker did not confirm in time and may have taken. resend: it is published again under the same message-id, by which consumers drop it. deadLetter: a person decides."
    }),
    default: "resend"
  },
  ...commonSettings
} as const satisfies { readonly [Name in keyof AmqpTargetSettings]: Setting }

export const secrets = {
  password: {
    schema: Schema.String,
    replaceable: true,
    // Stored as it was written in the URL.
    alsoWritten: (written) => (isDecodable(written) ? [decodeURIComponent(written)] : []),
    within: {
      setting: "url",
      takenOut: (text) => {
        const url = URL.parse(text)
        if (url === null || url.password === "") return { text, secret: null }
        const secret = url.password
        url.password = ""
        return { text: url.href, secret }
      }
    }
  }
} as const satisfies Record<string, SecretField>

export const withPassword = (text: string, password: string | null): string => {
  if (password === null) return text
  const url = new URL(text)
  url.password = password
  return url.href
}

const TCP_PORT = 5672
const TLS_PORT = 5671

export const portOf = ({ port, protocol }: URL): number =>
  port === "" ? (protocol === "amqps:" ? TLS_PORT : TCP_PORT) : Number(port)

/** Reason why a URL names no broker that may be called; null when it does. Names are judged again when resolved. */
export const checkUrl = (text: string, guard: AddressGuard): string | null => {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== "amqp:" && url.protocol !== "amqps:") || url.hostname === "") {
    return "must look like amqp://user:password@host:5672/vhost"
  }
  if (url.search !== "" || url.hash !== "") return "may have no query and no fragment"
  if (!isDecodable(url.username) || !isDecodable(url.password) || !isVirtualHost(url.pathname)) {
    return "must have a user, a password and one virtual host that are percent-encoded, such as %2F for /"
  }
  return checkAddress(guard, url.hostname, portOf(url))
}

const isVirtualHost = (path: string) => /^(\/[^/]*)?$/.test(path) && isDecodable(path)

const isDecodable = (text: string): boolean => {
  try {
    return decodeURIComponent(text).isWellFormed()
  } catch {
    return false
  }
}

/** An IPv6 address has no brackets. */
export const hostOf = ({ hostname }: URL): string => literalAddress(hostname) ?? hostname
