// Finds the pod that calls, by the token in the call's metadata. A refusal is counted and logged here. The servers of streams and of
// certificates call it.
import type { Metadata } from "@grpc/grpc-js";
import type { AddressLimit } from "./address-limit.ts";
import type { Rejections } from "./rejections.ts";
import type { TokenReviewer, Verdict } from "./token-reviewer.ts";

/**
 * @param peer the address that the call comes from
 */
export type Identify = (metadata: Metadata, peer: string) => Promise<Verdict>;

export interface IdentifyOptions {
  readonly reviewer: TokenReviewer;
  readonly rejections: Rejections;
  readonly limit: AddressLimit;
}

const BEARER = /^bearer +(\S+)$/i;

export function createIdentify({ reviewer, rejections, limit }: IdentifyOptions): Identify {
  return async (metadata, peer) => {
    const address = hostOf(peer);
    // An honest proxy behind the same address comes back and gets its turn.
    if (!limit.take(address)) return { kind: "wait", message: "too many tokens from this address were refused" };
    const verdict = await verdictOf(metadata, reviewer);
    if (verdict.kind === "refuse") rejections.reject(verdict.reason, address, verdict.message);
    else limit.giveBack(address);
    return verdict;
  };
}

async function verdictOf(metadata: Metadata, reviewer: TokenReviewer): Promise<Verdict> {
  const given = metadata.get("authorization");
  const token = given.length === 1 ? BEARER.exec(String(given[0]))?.[1] : undefined;
  if (token === undefined) return { kind: "refuse", reason: "no-token", message: "the call carries no bearer token" };
  return reviewer.review(token);
}

/** The address of a peer without its port. */
export function hostOf(peer: string): string {
  return peer.replace(/:\d+$/, "");
}
