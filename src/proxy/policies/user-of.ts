// Who sends a request, for exceptions of rules. Invariant: the name is only a claim. That is safe, since the API
// server refuses a request whose token or impersonation it does not accept.
import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { bearerClaims } from "../../base/bearer-claims.ts";

/** The subprotocol by which browsers send a token (k8s.io/apiserver/pkg/authentication/request/websocket). */
const WEBSOCKET_TOKEN = "base64url.bearer.authorization.k8s.io.";

const claimsSchema = z.object({ sub: z.string() });

/** "" if the headers name nobody. The subject of a token of a service account is its user name. */
export function userOf({ authorization = "", ...headers }: IncomingHttpHeaders): string {
  // The API server goes on to this token if it does not accept the other one.
  if (String(headers["sec-websocket-protocol"] ?? "").includes(WEBSOCKET_TOKEN)) return "";
  const impersonated = headers["impersonate-user"];
  if (typeof impersonated === "string" && impersonated !== "") return impersonated;
  const claims = claimsSchema.safeParse(bearerClaims(authorization));
  return claims.success ? claims.data.sub : "";
}
