// The claims of a JSON Web Token in an Authorization header. Nobody has checked its signature: they count for no more than the answer of
// an API server that has accepted the token.
import { tryParseJson } from "./json.ts";

/** Undefined if the header has no such token. */
export function bearerClaims(authorization: string): unknown {
  const [, payload] = /^Bearer [^.\s]+\.([^.\s]+)\.[^.\s]*$/i.exec(authorization) ?? [];
  return payload === undefined ? undefined : tryParseJson(Buffer.from(payload, "base64url"));
}
