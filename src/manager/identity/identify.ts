// Finds the pod that calls, by the token in the call's metadata. A refusal is counted and logged here. The servers of streams and of
// certificates call it.
import type { Metadata } from "@grpc/grpc-js";
import { BoundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/clock.ts";
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

/** A token has one or two thousand characters. HTTP/2 lets 64 KiB pass, which would stay in memory until the review of the token is over. */
const MAX_METADATA_BYTES = 16 * 1024;

async function verdictOf(metadata: Metadata, reviewer: TokenReviewer): Promise<Verdict> {
  if (sizeOf(metadata) > MAX_METADATA_BYTES) {
    return { kind: "refuse", reason: "bad-request", message: `the call has more than ${MAX_METADATA_BYTES} bytes of metadata` };
  }
  const given = metadata.get("authorization");
  const token = given.length === 1 ? BEARER.exec(String(given[0]))?.[1] : undefined;
  if (token === undefined) return { kind: "refuse", reason: "no-token", message: "the call carries no bearer token" };
  return reviewer.review(token);
}

function sizeOf(metadata: Metadata): number {
  let size = 0;
  for (const [name, value] of Object.entries(metadata.toHttp2Headers())) {
    const values = Array.isArray(value) ? value : [value ?? ""];
    for (const each of values) size += name.length + String(each).length;
  }
  return size;
}

/** The address of a peer without its port. */
export function hostOf(peer: string): string {
  return peer.replace(/:\d+$/, "");
}

/**
 * Bounds the refused token reviews of one address, so that invented tokens do not keep others from being reviewed. A review takes a place when it
 * begins, so no address has more than a burst of reviews under way.
 */
interface AddressLimit {
  /** Takes a place. False if there is none. */
  take(address: string): boolean;
  /** The token was good, or there was no answer about it. */
  giveBack(address: string): void;
}

// Some clusters show a thousand proxies under one address.
const BURST = 1_024;
const REFILL_MS = 100;
const MAX_ADDRESSES = 4_096;

export function createAddressLimit(clock: Clock): AddressLimit {
  const buckets = new BoundedMap<string, { left: number; atMs: number }>(MAX_ADDRESSES);
  return {
    take(address) {
      const nowMs = clock.monotonicMs();
      const { left, atMs } = buckets.get(address) ?? { left: BURST, atMs: nowMs };
      const places = Math.min(BURST, left + (nowMs - atMs) / REFILL_MS);
      buckets.set(address, { left: places < 1 ? places : places - 1, atMs: nowMs });
      return places >= 1;
    },
    giveBack(address) {
      const bucket = buckets.get(address);
      if (bucket !== undefined) bucket.left = Math.min(BURST, bucket.left + 1);
    },
  };
}
