// The errors upon which the client of a watch has to list again. Pure.
import { MeshError } from "../../base/errors.ts";

/** The expected kind: the watch cannot go on, and nothing is wrong. */
export function notRenewed(why: string): MeshError {
  return new MeshError("NOT_RENEWED", `renewing a watch: ${why}`);
}

/** The error for a reply that a renewal cannot use, described by `what`. A 410 and an unreadable reply are expected. */
export function renewalFailed(what: string, status: number): MeshError {
  return status === 200 || status === 410 ? notRenewed(what) : new MeshError("RENEWAL_FAILED", `renewing a watch: ${what}`);
}
