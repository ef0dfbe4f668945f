/**
 * The form of a key: `ph_live_`, 32 random bytes in base64url, and a checksum that tells a mistyped key from an unknown
 * one without the store. Only its SHA-256 is stored: 256 random bits need nothing slower.
 */
import { hash, randomBytes, timingSafeEqual } from "node:crypto"
import { crc32 } from "node:zlib"

const PREFIX = "ph_live_"
const shape = /^ph_live_([A-Za-z0-9_-]{43})_([0-9A-Za-z]{6})$/

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** The CRC32 in base 62 fills six characters. */
const checksum = (text: string): string => {
  let rest = crc32(text)
  let digits = ""
  for (let place = 0; place < 6; place++) {
    digits = DIGITS[rest % 62] + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}

export const generateKey = (): string => {
  const secret = randomBytes(32).toString("base64url")
  return `${PREFIX}${secret}_${checksum(secret)}`
}

/** Four of the 43 random letters tell an org's keys apart. */
export const prefixOf = (key: string): string => key.slice(0, PREFIX.length + 4)

export const isWellFormed = (key: string): boolean => {
  const parts = shape.exec(key)
  return parts !== null && checksum(parts[1]!) === parts[2]
}

export const hashOf = (key: string): Buffer => hash("sha256", key, "buffer")

/** Takes the same time wherever two keys differ. */
export const isSameHash = (a: Buffer, b: Buffer): boolean => timingSafeEqual(a, b)

export const storedHash = (hashed: Buffer): string => hashed.toString("hex")
