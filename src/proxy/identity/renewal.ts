// When a certificate of the mesh is to be renewed. Pure but for chance. Used by mesh-certificate.
import type { X509Certificate } from "node:crypto";
import type { BackoffOptions } from "../../base/backoff.ts";
import { CLOCK_SKEW_MS } from "../../base/certificates.ts";
import type { Random } from "../../base/clock.ts";

/** How often is looked at least whether it is due: the CAs' file as well. */
export const CHECK_MS = 10_000;

/** Pods that start together with their manager are to have one soon after it is up. */
const FIRST: BackoffOptions = { baseMs: 200, maxMs: 5_000 };
const FIRST_REFUSED: BackoffOptions = { baseMs: 1_000, maxMs: 60_000 };
/** The old one is good for hours. */
const RENEWAL: BackoffOptions = { baseMs: 5_000, maxMs: 300_000 };

export function retryBackoff(hasOne: boolean, isRefused: boolean): BackoffOptions {
  if (hasOne) return RENEWAL;
  return isRefused ? FIRST_REFUSED : FIRST;
}

/**
 * Wall time in milliseconds: within a tenth of its life before its half is over, so that pods that started together come one by one.
 * Its life begins when it was issued; that it is dated back, for clocks that are late, would be all of a short life and more.
 */
export function renewalTime({ validFromDate, validToDate }: X509Certificate, random: Random): number {
  const from = validFromDate.getTime() + CLOCK_SKEW_MS;
  return from + (validToDate.getTime() - from) * (0.5 - 0.1 * random());
}
