/**
 * Splits a DATABASE_URL with several hosts, as libpq reads it (`postgres://user@a:5432,b:5432/db?target_session_attrs=read-write`), into
 * one URL for each host, because `pg` reads only one.
 */
import { Result } from "effect"

/** libpq's words for a writable server, or any. */
const ATTRIBUTES = ["read-write", "primary", "any"]

export const urlsOf = (given: string): Result.Result<ReadonlyArray<string>, string> => {
  const parts = /^(postgres(?:ql)?:\/\/)((?:[^/?]*@)?)([^/?@]*)([^?]*)(?:\?(.*))?$/s.exec(given)
  const wrong = Result.fail("must look like postgres://user:password@host:5432/database")
  if (parts === null) return wrong
  const [, scheme, user, hosts, path, query] = parts
  const parameters = new URLSearchParams(query ?? "")
  const wanted = parameters.get("target_session_attrs")
  if (wanted !== null && !ATTRIBUTES.includes(wanted)) {
    return Result.fail(
      "must ask for target_session_attrs=read-write, or for none: Posthaste can't work on a server that only reads"
    )
  }
  parameters.delete("target_session_attrs")
  const rest = parameters.size === 0 ? "" : `?${parameters}`
  const urls = hosts!.split(",").map((host) => `${scheme}${user}${host}${path}${rest}`)
  return urls.every((url) => URL.canParse(url)) ? Result.succeed(urls) : wrong
}
