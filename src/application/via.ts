/** The way by which a request came in: `http`, `alert`, `amqp` or `sql`. Only metrics use it. */
import { Context } from "effect"

export const Via = Context.Reference<string>("posthaste/application/via", { defaultValue: () => "http" })
