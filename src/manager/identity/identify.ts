// Finds the pod that calls, by the token in the call's metadata.
import type { Metadata } from "@grpc/grpc-js";
import type { ClientPace } from "../../base/client-pace.ts";
import { clientOf } from "../../base/connection-places.ts";
import type { Rejections } from "./rejections.ts";
import { refuse, type TokenReviewer, type TokenVerdict } from "./token-reviewer.ts";

/** @param peer address and port that the call comes from */
export type Identify = (metadata: Metadata, peer: string) => Promise<TokenVerdict>;

interface IdentifyOptions {
  readonly reviewer: TokenReviewer;
  readonly rejections: Rejections;
  /** By address. A review counts while it is under way, and after it if the token was refused. */
  readonly limit: Pick<ClientPace, "allow" | "giveBack">;
}

const BEARER = /^bearer +(\S+)$/i;

export function createIdentify({ reviewer, rejections, limit }: IdentifyOptions): Identify {
  return async (metadata, peer) => {
    const address = clientOf(hostOf(peer));
    // A real proxy behind the same address tries again later.
    if (!limit.allow(address, 1)) return { kind: "wait", message: "too many tokens from this address were refused" };
    const verdict = await verdictOf(metadata, (token) => reviewer.review(token, address));
    if (verdict.kind === "refuse") rejections.reject(verdict.reason, address, verdict.message);
    else limit.giveBack(address, 1);
    return verdict;
  };
}

/** A token has 1 or 2 KB. HTTP/2 lets 64 KiB pass, which would stay in memory during the review. */
const MAX_METADATA_BYTES = 16 * 1024;

async function verdictOf(metadata: Metadata, review: (token: string) => Promise<TokenVerdict>): Promise<TokenVerdict> {
  if (sizeOf(metadata) > MAX_METADATA_BYTES) {
    return refuse("bad-request", `the call has more than ${MAX_METADATA_BYTES} bytes of metadata`);
  }
  const headers = metadata.get("authorization");
  const token = headers.length === 1 ? BEARER.exec(String(headers[0]))?.[1] : undefined;
  if (token === undefined) return refuse("no-token", "the call carries no bearer token");
  return review(token);
}

function sizeOf(metadata: Metadata): number {
  let size = 0;
  for (const [name, value] of Object.entries(metadata.toHttp2Headers())) {
    const values = Array.isArray(value) ? value : [value ?? ""];
    for (const each of values) size += name.length + String(each).length;
  }
  return size;
}

export const hostOf = (peer: string) => peer.replace(/:\d+$/, "");

/** The limit for one address. Some clusters show a thousand proxies under the same one. */
export const REFUSED_TOKENS = { perSecond: 10, burst: 1_024 };
