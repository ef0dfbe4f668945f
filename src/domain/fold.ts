/** Rebuilds a state from its history. `step` answers the state after a fact, or null where the law forbids the fact. */
export const foldOf = <State, Fact extends { readonly type: string }>(
  initial: State,
  step: (state: State, fact: Fact) => State | null,
  statusOf: (state: State) => unknown
) => {
  /** A forbidden fact is a bug in the code that appended it: it throws and is never repaired silently. */
  const evolve = (state: State, fact: Fact): State => {
    const after = step(state, fact)
    if (after === null) throw new Error(`${fact.type} cannot follow ${statusOf(state)}`)
    return after
  }
  return {
    can: (state: State, fact: Fact): boolean => step(state, fact) !== null,
    allows: (state: State, facts: ReadonlyArray<Fact>): boolean =>
      facts.reduce<State | null>((before, fact) => (before === null ? null : step(before, fact)), state) !== null,
    evolve,
    replay: (history: ReadonlyArray<Fact>): State => history.reduce(evolve, initial)
  }
}
