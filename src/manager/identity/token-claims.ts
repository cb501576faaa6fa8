// A look at what a token says of itself, which nobody has verified. Pure. Used only to refuse early what the API server would refuse too,
// never to believe anything.

/** Audience of the token by which a proxy proves which pod it is in. */
export const TOKEN_AUDIENCE = "ctrlmesh";

/** Clocks differ: a token that is over by less is left to the API server. */
const SKEW_MS = 300_000;

/** Why the token cannot be good; undefined if only the API server can tell. */
export function whyHopeless(token: string, nowMs: number): string | undefined {
  const { aud, exp } = claimsOf(token);
  if (aud !== TOKEN_AUDIENCE && !(Array.isArray(aud) && aud.includes(TOKEN_AUDIENCE)))
    return `the token is not valid for the audience ${TOKEN_AUDIENCE}`;
  if (typeof exp !== "number" || exp * 1_000 + SKEW_MS < nowMs) return "the token is expired";
  return undefined;
}

function claimsOf(token: string): { readonly aud?: unknown; readonly exp?: unknown } {
  try {
    return Object(JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()));
  } catch {
    return {};
  }
}
