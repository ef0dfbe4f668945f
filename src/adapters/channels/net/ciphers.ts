/**
 * What TLS to a destination may use: Node's own choice without the key exchange in which the far side names the group. With a group of
 * 8,192 bits each handshake keeps the one thread for a tenth of a second, whoever's messages wait behind it.
 */
import tls from "node:tls"

export const ciphers = `${tls.DEFAULT_CIPHERS}:!kDHE`
