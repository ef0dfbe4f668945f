/** Web Crypto, which every runtime has as a global but Node 18, where it is a module of its own. */
export const webCrypto = async (): Promise<typeof globalThis.crypto> => {
  if (globalThis.crypto !== undefined) return globalThis.crypto
  try {
    // Bundlers leave it alone: what they bundle for has the global.
    const { webcrypto } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:crypto")
    return webcrypto as typeof globalThis.crypto
  } catch (cause) {
    throw new Error("This runtime has no Web Crypto.", { cause })
  }
}
