import { Context, type Redacted } from "effect"

/**
 * What a webhook endpoint may be. Each check answers null when the value is fine, otherwise the reason
 * in words its owner can act on. The checks judge what was written, not what the network does later:
 * an address is judged again whenever a connection is made.
 */
export class EndpointPolicy extends Context.Service<
  EndpointPolicy,
  {
    readonly checkUrl: (url: string) => string | null
    readonly checkHeaders: (headers: Readonly<Record<string, string>>) => string | null
    readonly checkSecret: (secret: Redacted.Redacted) => string | null
    readonly generateSecret: () => Redacted.Redacted
  }
>()("posthaste/application/ports/EndpointPolicy") {}
