import { describe, expect, it } from "vitest"
import {
  type Consent,
  type ConsentCommand,
  type ConsentOf,
  decide,
  evolve,
  initial,
  objection
} from "../../../src/domain/consent/consent.ts"
import { OrgId } from "../../../src/domain/ids.ts"

const of: ConsentOf = { orgId: OrgId.make("acme"), dossierId: "case-17", channel: "whatsapp" }
const grant = (source: string): ConsentCommand => ({ type: "GrantConsent", source })
const withdraw = (source: string): ConsentCommand => ({ type: "WithdrawConsent", source })
const apply: ConsentCommand = { type: "ApplyWithdrawal", cancelled: 2 }

const answered = (...commands: ReadonlyArray<ConsentCommand>): Consent =>
  commands.reduce((consent, command) => decide(consent, of, command).reduce(evolve, consent), initial)
const facts = (consent: Consent, command: ConsentCommand) => decide(consent, of, command).map(({ type }) => type)

describe("a consent", () => {
  it("is what was answered last, with its source", () => {
    expect(answered()).toEqual(initial)
    expect(answered(grant("form"))).toEqual({ status: "GRANTED", source: "form", open: false })
    expect(answered(grant("form"), withdraw("call"))).toEqual({ status: "WITHDRAWN", source: "call", open: true })
    expect(answered(withdraw("call"), grant("form"))).toEqual({ status: "GRANTED", source: "form", open: false })
  })

  it("takes the same answer from the same source for no news", () => {
    expect(facts(answered(grant("form")), grant("form"))).toEqual([])
    expect(facts(answered(grant("form")), grant("letter"))).toEqual(["ConsentGranted"])
    expect(facts(answered(withdraw("call")), withdraw("call"))).toEqual([])
    expect(facts(answered(withdraw("call")), withdraw("letter"))).toEqual(["ConsentWithdrawn"])
  })

  it("can be withdrawn without ever having been granted", () => {
    expect(facts(initial, withdraw("call"))).toEqual(["ConsentWithdrawn"])
  })

  it("is open from its withdrawal until that is applied or taken back", () => {
    expect(facts(answered(withdraw("call")), apply)).toEqual(["WithdrawalApplied"])
    expect(answered(withdraw("call"), apply)).toEqual({ status: "WITHDRAWN", source: "call", open: false })
    expect(facts(answered(withdraw("call"), apply), apply)).toEqual([])
    expect(facts(answered(withdraw("call"), grant("form")), apply)).toEqual([])
    expect(facts(initial, apply)).toEqual([])
  })
})

describe("a message of a dossier", () => {
  it("may go to a person only with a consent", () => {
    expect(objection(true, initial)).toBe("no consent")
    expect(objection(true, answered(grant("form")))).toBeNull()
  })

  it("may go to a system unless somebody objects", () => {
    expect(objection(false, initial)).toBeNull()
    expect(objection(false, answered(grant("form")))).toBeNull()
  })

  it.each([true, false])("may not go once the consent is withdrawn, to a person: %s", (reachesPerson) => {
    expect(objection(reachesPerson, answered(withdraw("call")))).toBe("consent withdrawn")
    expect(objection(reachesPerson, answered(withdraw("call"), apply))).toBe("consent withdrawn")
    expect(objection(reachesPerson, answered(withdraw("call"), grant("form")))).toBeNull()
  })
})
