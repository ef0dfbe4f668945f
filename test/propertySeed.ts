/**
 * Every property is tried with the same inputs each time, so that a test says something about the commit and not about luck.
 * POSTHASTE_TEST_SEED=<number> searches elsewhere: `for s in $(seq 100); do POSTHASTE_TEST_SEED=$s npx vitest run --project unit; done`.
 */
import fc from "fast-check"

export const propertySeed = Number(process.env["POSTHASTE_TEST_SEED"] ?? 1)

fc.configureGlobal({ seed: propertySeed })
