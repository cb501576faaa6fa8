// Compiles rules about requests to other servers. Pure. Invariant: a part of a rule that the proxy cannot
// see, such as the path inside a tunnel, does not match. Called by the matcher.
import type { HttpRule } from "./policy.ts";
import type { PolicyRequest } from "./policy-request.ts";
import { compileTextMatch } from "./text-match.ts";

/** True if the request is to another server and the rule is about it. */
export type HttpTest = (request: PolicyRequest) => boolean;

export function compileHttpRule({ host, path, method, headers }: HttpRule): HttpTest {
  const isHost = host === undefined ? undefined : compileTextMatch(host);
  const isPath = path === undefined ? undefined : compileTextMatch(path);
  const wanted = headers.map(({ name, value }) => ({ name: name.toLowerCase(), value }));
  return ({ egress, method: sent }) => {
    if (egress === undefined || (method !== undefined && method !== sent)) return false;
    if (isHost?.(egress.host) === false) return false;
    if (isPath !== undefined && (egress.path === undefined || !isPath(egress.path))) return false;
    return wanted.every(({ name, value }) => [egress.headers[name]].flat().includes(value));
  };
}
