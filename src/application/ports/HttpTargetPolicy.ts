import { Context } from "effect"
import type { HttpTargetSettings } from "./HttpTargets.ts"

/** What is judged of a target. A secret is only named here; what it holds is judged by `checkSecret`. */
export type HttpTargetDraft = Pick<HttpTargetSettings, "url" | "headers" | "bodyFields" | "reconcile"> & {
  readonly secretNames: ReadonlyArray<string>
}

/**
 * What an HTTP target may be, judged as a whole because headers and body fields name secrets. The judgement is about what was
 * written, not what the network does later: an address is judged again whenever a connection is made.
 */
export class HttpTargetPolicy extends Context.Service<
  HttpTargetPolicy,
  {
    /** Every field that is wrong, with the reason in words its owner can act on. */
    readonly faultsOf: (
      target: HttpTargetDraft
    ) => ReadonlyArray<{ readonly field: "url" | "headers" | "bodyFields" | "reconcile.url"; readonly reason: string }>
    /** Null when the name and the value are fine. The reason never repeats the value. */
    readonly checkSecret: (name: string, value: string) => string | null
  }
>()("posthaste/application/ports/HttpTargetPolicy") {}
