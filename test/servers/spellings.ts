/** The forms in which a text may stand in a dump or in a log without anybody reading it at once. */
import { hash } from "node:crypto"

/** To be looked for in lower case. Of what a text is part of, base64 shows it in one of three ways. */
export const spellingsOf = (text: string): ReadonlyArray<string> => {
  const bytes = Buffer.from(text)
  const within = [0, 1, 2].map((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes])
      .toString("base64")
      .replaceAll("=", "")
    // The first and the last digits are also of what stands beside it.
    return encoded.slice(before === 0 ? 0 : before + 1, (before + bytes.length) % 3 === 0 ? undefined : -1)
  })
  const digests = ["md5", "sha1", "sha256"].flatMap((algorithm) => {
    const digest = hash(algorithm, bytes, "buffer")
    return [digest.toString("hex"), digest.toString("base64").replaceAll("=", "")]
  })
  const escaped = [...text].map((letter) => `\\u${letter.codePointAt(0)!.toString(16).padStart(4, "0")}`).join("")
  const all = [text, encodeURIComponent(text), bytes.toString("hex"), escaped, ...within, ...digests]
  return [...new Set(all.map((one) => one.toLowerCase()))]
}

/** Whether one of the spellings is in it, also of what was written in capitals. */
export const isIn = (text: string, spellings: ReadonlyArray<string>): boolean => {
  const lower = text.toLowerCase()
  return spellings.some((one) => lower.includes(one))
}
