/**
 * The way by which a request came in: `http`, `alert`, or the way of a command (`amqp`, `sql`). Whoever calls `acceptMessages` from
 * another way in than HTTP provides it. Metrics count by it; nothing is decided by it.
 */
import { Context } from "effect"

export const Via = Context.Reference<string>("posthaste/application/via", { defaultValue: () => "http" })
