// Chooses the pod that a review is forwarded to, and how long that may take. Pure. Invariant: an answer is
// due before the API server stops waiting.
import { parseDuration, type Random } from "../../base/clock.ts";
import type { PodPeer } from "../../mesh/contract/peer-type.ts";

/** Reviews that one proxy has at one peer at a time. */
export const MAX_AT_PEER = 64;

export type PeerChoice =
  | { readonly kind: "peer"; readonly peer: PodPeer }
  | { readonly kind: "none"; readonly why: "no-pod" | "not-ready" | "full" | "direct" };

export interface PeerLoad {
  inFlightAt(peer: PodPeer): number;
  readonly random: Random;
}

/** A ready peer of the subset with the least in flight. `failed` could not be connected to. */
export function choosePeer(peers: readonly PodPeer[], subset: string, load: PeerLoad, failed?: PodPeer): PeerChoice {
  const all = peers.filter((peer) => peer.subset === subset && !peer.isDirect);
  const ready = all.filter((peer) => peer.isReady && peer.uid !== failed?.uid);
  const counts = ready.map((peer) => load.inFlightAt(peer));
  const least = Math.min(MAX_AT_PEER, ...counts);
  const free = least < MAX_AT_PEER ? ready.filter((_, index) => counts[index] === least) : [];
  const peer = free[Math.floor(load.random() * free.length)];
  if (peer !== undefined) return { kind: "peer", peer };
  const isDirectReady = peers.some((each) => each.subset === subset && each.isDirect && each.isReady);
  if (ready.length === 0 && isDirectReady) return { kind: "none", why: "direct" };
  if (all.length === 0) return { kind: "none", why: "no-pod" };
  return { kind: "none", why: ready.length === 0 ? "not-ready" : "full" };
}

/** The timeout of a webhook that sets none (admissionregistration.k8s.io/v1, timeoutSeconds). */
const DEFAULT_TIMEOUT_MS = 10_000;
/** The longest timeout that a webhook may set. */
export const MAX_TIMEOUT_MS = 30_000;
/** For the way back to the API server, which would otherwise say only that its deadline passed. */
const MARGIN_MS = 200;
const MARGIN_PART = 0.1;

/** The time for a call: its target's `timeout`, a Go duration, less a margin. */
export function budgetMs(target: string): number {
  const text = new URLSearchParams(target.split("?")[1] ?? "").get("timeout") ?? "";
  const asked = parseDuration(text.slice(0, 32)) || DEFAULT_TIMEOUT_MS;
  const timeoutMs = Math.min(asked, MAX_TIMEOUT_MS);
  return Math.floor(timeoutMs - Math.min(MARGIN_MS, timeoutMs * MARGIN_PART));
}
