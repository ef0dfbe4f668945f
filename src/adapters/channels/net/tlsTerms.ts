/**
 * What TLS to a destination may use: Node's own choice without what lets the far side keep the one thread busy, whoever's messages wait
 * behind it.
 *
 * - The key exchange in which the far side names the group: with one of 8,192 bits each handshake takes a tenth of a second.
 * - Handshakes that the far side begins anew on an open connection, as often as it likes.
 */
import { constants } from "node:crypto"
import tls from "node:tls"

export const tlsTerms = {
  ciphers: `${tls.DEFAULT_CIPHERS}:!kDHE`,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION
}
