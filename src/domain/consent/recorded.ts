/** Where a fact of a dossier meets its stored form. */
import { codecOf } from "../recorded.ts"
import { type DossierFact, recorded } from "./facts.ts"

export const { toRecorded, fromRecorded } = codecOf<DossierFact>(recorded)
