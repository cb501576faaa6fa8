// Who sends a request, for exceptions of rules. Invariant: the name is only a claim. That is safe, since the API
// server refuses a request whose token or impersonation it does not accept.
import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { tryParseJson } from "../../base/json.ts";

const claimsSchema = z.object({ sub: z.string() });

/** "" if the headers name nobody. The subject of a token of a service account is its user name. */
export function userOf({ authorization = "", ...headers }: IncomingHttpHeaders): string {
  const impersonated = headers["impersonate-user"];
  if (typeof impersonated === "string" && impersonated !== "") return impersonated;
  const [, payload] = /^Bearer [^.\s]+\.([^.\s]+)\.[^.\s]*$/i.exec(authorization) ?? [];
  if (payload === undefined) return "";
  const claims = claimsSchema.safeParse(tryParseJson(Buffer.from(payload, "base64url")));
  return claims.success ? claims.data.sub : "";
}
