// Whether the server that a TLS client names is the one that it may call. Pure. Invariant: a tunnel to a name
// carries TLS for this name. Called for every tunnel with the client's first message.
import { isIP } from "node:net";
import type { ClientHello } from "./client-hello.ts";
import type { EgressResult } from "./egress-error.ts";

/**
 * The reason to close the tunnel; undefined if there is none.
 * @param host of the CONNECT request
 * @param isAllowList only listed servers may be called
 */
export function serverNameProblem(
  hello: Exclude<ClientHello, { kind: "incomplete" }>,
  host: string,
  isAllowList: boolean,
): Extract<EgressResult, "no-tls" | "sni-mismatch" | "no-sni"> | undefined {
  if (hello.kind === "not-tls") return "no-tls";
  if (hello.serverName !== undefined) return hello.serverName === host ? undefined : "sni-mismatch";
  // Clients name no addresses (RFC 6066 section 3). The rules have judged the address itself.
  return isIP(host) === 0 && isAllowList ? "no-sni" : undefined;
}
