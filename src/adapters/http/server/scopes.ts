/**
 * Which scope a key needs for each route. A route without a row is for `admin` and the operator; a test names it, so that somebody
 * decides.
 */
import type { Scope } from "../../../application/keys/scopes.ts"

/** Of the routes of destinations, which every channel has, the path stands as `:destinations`. */
export const scopeOfRoute: Readonly<Record<string, Scope>> = {
  "POST /outbound/messages": "messages:send",
  "POST /outbound/messages/batch": "messages:send",
  "GET /outbound/messages": "messages:read",
  "GET /outbound/messages/:id": "messages:read",
  "GET /outbound/messages/:id/explanation": "messages:read",
  "GET /outbound/messages/:id/events": "messages:read",
  "GET /outbound/messages/:id/attempts": "messages:read",
  "GET /outbound/messages/:id/body": "bodies:read",
  "GET /outbound/stats": "messages:read",
  "GET /streams/:stream": "messages:read",
  "GET /feed": "messages:read",
  "POST /outbound/messages/:id/cancel": "messages:send",
  "POST /outbound/messages/cancel": "messages:send",
  "POST /outbound/messages/:id/retry-now": "replays:write",
  "POST /outbound/messages/:id/dismiss": "replays:write",
  "POST /outbound/messages/:id/replay": "replays:write",
  "POST /outbound/messages/:id/resend": "replays:write",
  "POST /outbound/messages/:id/erase": "erasures:write",
  "POST /erasures": "erasures:write",
  "GET /erasures": "erasures:write",
  "GET /erasures/:id": "erasures:write",
  "POST /events": "messages:send",
  "POST /events/batch": "messages:send",
  "GET /events": "messages:read",
  "GET /events/:id": "messages:read",
  "GET /events/:id/messages": "messages:read",
  "POST /events/:id/erase": "erasures:write",
  "GET /event-types": "endpoints:read",
  "GET /event-types/:name": "endpoints:read",
  "POST /event-types": "endpoints:write",
  "PUT /event-types/:name": "endpoints:write",
  "DELETE /event-types/:name": "endpoints:write",
  "GET /dead-letters": "messages:read",
  "POST /dead-letters/replay": "replays:write",
  "POST /dead-letters/dismiss": "replays:write",
  "GET /replays": "messages:read",
  "GET /replays/:id": "messages:read",
  "POST /replays/:id/cancel": "replays:write",
  "GET /channels": "endpoints:read",
  "GET /destinations": "endpoints:read",
  "GET /destinations/:id": "endpoints:read",
  "POST /destinations/:id/pause": "endpoints:write",
  "POST /destinations/:id/resume": "endpoints:write",
  "POST /destinations/:id/enable": "endpoints:write",
  "POST /destinations/:id/hold": "endpoints:write",
  "POST /destinations/:id/reset": "endpoints:write",
  "POST /destinations/pause": "endpoints:write",
  "POST /destinations/resume": "endpoints:write",
  "POST /destinations/enable": "endpoints:write",
  "POST /destinations/hold": "endpoints:write",
  "POST /destinations/reset": "endpoints:write",
  "GET /circuits": "endpoints:read",
  "GET /circuits/:id": "endpoints:read",
  "POST /circuits/:id/hold": "endpoints:write",
  "POST /circuits/:id/reset": "endpoints:write",
  "POST /:destinations": "endpoints:write",
  "GET /:destinations": "endpoints:read",
  "GET /:destinations/:id": "endpoints:read",
  "PATCH /:destinations/:id": "endpoints:write",
  "DELETE /:destinations/:id": "endpoints:write",
  "POST /:destinations/:id/pause": "endpoints:write",
  "POST /:destinations/:id/resume": "endpoints:write",
  "POST /:destinations/:id/enable": "endpoints:write",
  "GET /:destinations/:id/health": "endpoints:read",
  "GET /:destinations/:id/retry-config": "endpoints:read",
  "PUT /:destinations/:id/retry-config": "endpoints:write",
  "DELETE /:destinations/:id/retry-config": "endpoints:write",
  // Who has the secret can sign as we do.
  "GET /:destinations/:id/secret": "endpoints:write",
  "POST /:destinations/:id/secret/rotate": "endpoints:write",
  "POST /webhook-endpoints/:id/test": "endpoints:write",
  "POST /webhook-endpoints/:id/recover": "replays:write",
  "POST /webhook-endpoints/:id/replay-missing": "replays:write",
  "POST /alert-targets": "endpoints:write",
  "GET /alert-targets": "endpoints:read",
  "GET /alert-targets/:id": "endpoints:read",
  "PATCH /alert-targets/:id": "endpoints:write",
  "DELETE /alert-targets/:id": "endpoints:write",
  "POST /alert-targets/:id/test": "endpoints:write",
  "GET /dossiers/:id/consents/:channel": "messages:read",
  "PUT /dossiers/:id/consents/:channel": "consents:write",
  "DELETE /dossiers/:id/consents/:channel": "consents:write",
  "GET /dossiers/:id/activity": "messages:read",
  "GET /audit": "audit:read",
  "POST /api-keys": "admin",
  "GET /api-keys": "admin",
  "DELETE /api-keys/:id": "admin"
}

/** The name of a route in the table; `destinations` are the paths of the channels' own. */
export const routeNameOf = (
  { method, path }: { readonly method: string; readonly path: string },
  destinations: ReadonlyArray<string>
): string => {
  const own = path.replace(/^\/api\/v1/, "")
  const given = `${method} ${own}`
  const channel = destinations.find((each) => own === `/${each}` || own.startsWith(`/${each}/`))
  // A channel may have routes that others lack: those stand in the table by themselves.
  return channel === undefined || given in scopeOfRoute
    ? given
    : `${method} /:destinations${own.slice(channel.length + 1)}`
}
