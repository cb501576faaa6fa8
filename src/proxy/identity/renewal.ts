// When an issued certificate is renewed, and when a failed request is repeated. Pure. mesh-certificate.ts uses it.
import type { X509Certificate } from "node:crypto";
import type { BackoffOptions } from "../../base/backoff.ts";
import { CLOCK_SKEW_MS } from "../../base/certificates.ts";
import type { Random } from "../../base/clock.ts";

/** The longest time between two checks of the certificate and of the CAs' file. */
export const CHECK_MS = 10_000;

/** Short, so that pods that start together with their manager get a certificate soon after it is up. */
const FIRST: BackoffOptions = { baseMs: 200, maxMs: 5_000 };
const FIRST_REFUSED: BackoffOptions = { baseMs: 1_000, maxMs: 60_000 };
/** Longer, since the old certificate is valid for hours. */
const RENEWAL: BackoffOptions = { baseMs: 5_000, maxMs: 300_000 };

export function retryBackoff(hasOne: boolean, isRefused: boolean): BackoffOptions {
  if (hasOne) return RENEWAL;
  return isRefused ? FIRST_REFUSED : FIRST;
}

/**
 * Wall time in milliseconds: shortly before half of the life is over, at random, so that pods that started together ask one by one.
 * The life begins when the certificate was issued. The certificate itself is dated back, for late clocks.
 */
export function renewalTime({ validFromDate, validToDate }: X509Certificate, random: Random): number {
  const from = validFromDate.getTime() + CLOCK_SKEW_MS;
  return from + (validToDate.getTime() - from) * (0.5 - 0.1 * random());
}
