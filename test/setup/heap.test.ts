/** What a service makes lies among the young objects, whatever earlier ones of its kind did. */
import { join } from "node:path"
import { expect, it } from "vitest"
import { compileCache, runProgramToEnd } from "../servers/posthaste.ts"

it("makes among the young ones what lives short, also where much has lived long", async () => {
  const program = join(import.meta.dirname, "youngObjects.mjs")
  const told = await runProgramToEnd(process.execPath, ["--allow-natives-syntax", "--expose-gc", program], {
    ...compileCache,
    // The start ends here.
    PORT: "none"
  })
  expect(told, told.err).toMatchObject({ code: 0, out: "1000\n" })
})
