/** Whose rows a query means: SQL for the generation of a projection that people see, and for the oldest there is. */
export const liveGeneration = (name: string): string =>
  `(select generation from projection where name = '${name}' and live)`

/** Rows below it are left behind. */
export const oldestGeneration = (name: string): string =>
  `(select min(generation) from projection where name = '${name}')`
