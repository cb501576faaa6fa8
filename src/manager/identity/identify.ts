// Who calls: the token in a call's metadata, and the pod that it is bound to. What is refused here is counted and logged here.
import type { Metadata } from "@grpc/grpc-js";
import type { Rejections } from "./rejections.ts";
import type { TokenReviewer, Verdict } from "./token-reviewer.ts";

/**
 * @param peer the address that the call comes from
 */
export type Identify = (metadata: Metadata, peer: string) => Promise<Verdict>;

export interface IdentifyOptions {
  readonly reviewer: TokenReviewer;
  readonly rejections: Rejections;
}

const BEARER = /^bearer +(\S+)$/i;

export function createIdentify({ reviewer, rejections }: IdentifyOptions): Identify {
  return async (metadata, peer) => {
    const verdict = await verdictOf(metadata, reviewer);
    if (verdict.kind === "refuse") rejections.reject(verdict.reason, hostOf(peer), verdict.message);
    return verdict;
  };
}

async function verdictOf(metadata: Metadata, reviewer: TokenReviewer): Promise<Verdict> {
  const given = metadata.get("authorization");
  const token = given.length === 1 ? BEARER.exec(String(given[0]))?.[1] : undefined;
  if (token === undefined) return { kind: "refuse", reason: "no-token", message: "the call carries no bearer token" };
  return reviewer.review(token);
}

/** The address of a peer without its port: a port says nothing, and there are many. */
export function hostOf(peer: string): string {
  return peer.replace(/:\d+$/, "");
}
