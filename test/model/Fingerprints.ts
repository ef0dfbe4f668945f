/** Fingerprints under a key that all tests share. */
import { Layer } from "effect"
import { fingerprintWith } from "../../src/adapters/postgres/destinations/encryptionCheck.ts"
import { Fingerprint } from "../../src/application/ports/Fingerprint.ts"

export const fingerprints = fingerprintWith("tests")
export const layer = Layer.succeed(Fingerprint, fingerprints)
