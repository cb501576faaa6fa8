// Chooses the pod that a review is forwarded to, and how long that may take. Pure. Invariants: only a call that no peer has seen is sent
// again, and only once; an answer is due before the API server stops waiting. Called by `answer-review.ts`.
import type { Random } from "../../base/clock.ts";
import type { PodPeer } from "../../wire/peer-type.ts";

/** Reviews that one proxy has at once at one peer. */
export const MAX_AT_PEER = 64;

export type PeerChoice =
  | { readonly kind: "peer"; readonly peer: PodPeer }
  | { readonly kind: "none"; readonly why: "no-pod" | "not-ready" | "full" | "direct" };

export interface PeerLoad {
  /** Reviews that this proxy has now at a peer. */
  inFlightAt(peer: PodPeer): number;
  readonly random: Random;
}

/** The ready peer of the subset with the least in flight, any of equals. `failed` is a peer that a first attempt could not connect to. */
export function choosePeer(peers: readonly PodPeer[], subset: string, load: PeerLoad, failed?: PodPeer): PeerChoice {
  const [all, direct] = [false, true].map((isDirect) =>
    peers.filter((peer) => peer.subset === subset && (peer.isDirect ?? false) === isDirect),
  ) as [PodPeer[], PodPeer[]];
  const ready = all.filter((peer) => peer.isReady && peer.uid !== failed?.uid);
  const counts = ready.map((peer) => load.inFlightAt(peer));
  const least = Math.min(MAX_AT_PEER, ...counts);
  const free = least < MAX_AT_PEER ? ready.filter((_, index) => counts[index] === least) : [];
  const peer = free[Math.floor(load.random() * free.length)];
  if (peer !== undefined) return { kind: "peer", peer };
  if (ready.length === 0 && direct.some(({ isReady }) => isReady)) return { kind: "none", why: "direct" };
  if (all.length === 0) return { kind: "none", why: "no-pod" };
  return { kind: "none", why: ready.length === 0 ? "not-ready" : "full" };
}

export interface Attempt {
  /** After a connect the peer may have acted. */
  readonly failed: "connect" | "after-connect";
  readonly attempts: number;
  /** Of the budget. */
  readonly leftMs: number;
}

/** True if another peer may be tried. */
export function isRetried({ failed, attempts, leftMs }: Attempt): boolean {
  return failed === "connect" && attempts < 2 && leftMs > 0;
}

/** What the API server waits if the webhook does not say (admissionregistration.k8s.io/v1, timeoutSeconds). */
const DEFAULT_TIMEOUT_MS = 10_000;
/** The most that it waits. */
export const MAX_TIMEOUT_MS = 30_000;
/** For the way back to the API server, which would otherwise say only that its deadline passed. */
const MARGIN_MS = 200;
const MARGIN_PART = 0.1;

/** The time for a call, from its target's `timeout` less a margin. The API server writes it as a Go duration. */
export function budgetMs(target: string): number {
  const text = new URLSearchParams(target.split("?")[1] ?? "").get("timeout") ?? "";
  const asked = durationMs(text) || DEFAULT_TIMEOUT_MS;
  const timeoutMs = Math.min(asked, MAX_TIMEOUT_MS);
  return Math.floor(timeoutMs - Math.min(MARGIN_MS, timeoutMs * MARGIN_PART));
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/;

// 0 if it is no duration.
function durationMs(text: string): number {
  if (text.length > 32 || !DURATION.test(text)) return 0;
  return [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * (UNITS_MS[unit ?? ""] ?? 0),
    0,
  );
}
