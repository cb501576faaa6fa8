// The steps of a CA rotation. Pure. Invariants: a CA is trusted everywhere before it signs, and while one of
// its leaves may be in use; a chain leads from each leaf to every valid CA that a pod may have loaded.
//
//     Signing(A) => Signing(A) + Next(B)             a third of A's life is left, or a user asks; A signs B's name and key
//     Signing(A) + Next(B) => Signing(B) + Old(A)    B was trusted for `settleMs`; A's key is forgotten
//     Signing(B) + Old(A) => Signing(B)              two weeks later; what A signed for B stays in the chain until A expires
import { randomBytes, X509Certificate } from "node:crypto";
import { CLOCK_SKEW_MS, createCa, crossSignCa, type KeyCertificate } from "../../base/certificates.ts";
import { joinPem } from "../../base/pem.ts";
import { type Authority, expiryOf } from "./authority.ts";

export interface CaState {
  readonly signing: KeyCertificate;
  /** The CA that will sign. `crossPem` has the same name and key, and is signed by the CA that signs now. */
  readonly next?: KeyCertificate & { readonly crossPem: string };
  /** PEM: CAs that have signed and are still trusted. */
  readonly old: readonly string[];
  /** PEM, newest first: certificates that lead from newer CAs to older valid ones. */
  readonly cross: readonly string[];
  /** When `signing` took over from another CA. */
  readonly promotedAtMs?: number;
  readonly rotationWanted: boolean;
}

type CaStep = "a new CA is trusted" | "the new CA signs" | "older CAs are forgotten" | "nothing to rotate";

const LIFETIME_DAYS = 3_650;
// The most rotations between the CA that a pod has loaded and the CA that signs.
const MAX_INTERMEDIATES = 16;
const KEEP_OLD_MS = 14 * 86_400_000;

export function createCaState(now: number): CaState {
  return { signing: newCa(now), old: [], cross: [], rotationWanted: false };
}

interface Rotation {
  readonly state: CaState;
  readonly step: CaStep;
}

/** The state after the step that is due, if any. */
export function advanceCa(
  state: CaState,
  { now, settleMs }: { readonly now: number; readonly settleMs: number },
): Rotation | undefined {
  const { signing, next } = state;
  if (next === undefined && (state.rotationWanted || isDue(signing, now))) {
    const ca = newCa(now);
    const crossPem = crossSignCa(signing, ca.certPem, MAX_INTERMEDIATES);
    return { state: { ...state, next: { ...ca, crossPem }, rotationWanted: false }, step: "a new CA is trusted" };
  }
  if (next !== undefined && (now >= madeAt(next) + settleMs || expiryOf(signing.certPem) <= now)) {
    const { crossPem, ...promoted } = next;
    const alive = [crossPem, ...state.cross].filter((pem) => expiryOf(pem) > now);
    const after = { signing: promoted, old: [...state.old, signing.certPem], cross: alive, promotedAtMs: now };
    return { state: { ...after, rotationWanted: false }, step: "the new CA signs" };
  }
  if (state.rotationWanted) return { state: { ...state, rotationWanted: false }, step: "nothing to rotate" };
  return forget(state, now);
}

function forget(state: CaState, now: number): Rotation | undefined {
  const promotedAtMs = Math.min(state.promotedAtMs ?? now, now);
  const old = now >= promotedAtMs + KEEP_OLD_MS ? [] : state.old.filter((pem) => expiryOf(pem) > now);
  const cross = state.cross.filter((pem) => expiryOf(pem) > now);
  const isSame = old.length === state.old.length && cross.length === state.cross.length;
  if (isSame && (old.length === 0 || promotedAtMs === state.promotedAtMs)) return undefined;
  return { state: { ...state, old, cross, promotedAtMs }, step: "older CAs are forgotten" };
}

export function authorityOf({ signing, next, old, cross }: CaState, settleMs: number): Authority {
  return {
    signer: signing,
    chainPem: cross.join(""),
    trustPem: joinPem(signing.certPem, next?.certPem ?? "", ...old),
    ...(next === undefined ? {} : { nextPem: next.certPem, nextSignsAtMs: madeAt(next) + settleMs }),
  };
}

function newCa(now: number): KeyCertificate {
  // Each CA has a name of its own, so that no verifier has to try keys.
  const commonName = `ctrlmesh CA ${randomBytes(4).toString("hex")}`;
  return createCa({ commonName, now, days: LIFETIME_DAYS, maxIntermediates: MAX_INTERMEDIATES });
}

function madeAt({ certPem }: KeyCertificate): number {
  return new X509Certificate(certPem).validFromDate.getTime() + CLOCK_SKEW_MS;
}

function isDue({ certPem }: KeyCertificate, now: number): boolean {
  const { validFromDate, validToDate } = new X509Certificate(certPem);
  return validToDate.getTime() - now < (validToDate.getTime() - validFromDate.getTime()) / 3;
}
