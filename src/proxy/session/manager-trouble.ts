// Why there is no stream to the manager, for /readyz and for the log. Invariant: a reason that only a user
// can fix (the manager does not believe the pod's identity, a file is missing) is logged once, and not with
// every attempt.
import { isMeshError, type MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { isRefusal, reasonOf } from "../identity/manager-channel.ts";
import type { Outcome } from "./next-attempt.ts";
import type { ManagerSession } from "./session.ts";

export interface ManagerTrouble extends Pick<ManagerSession, "trouble"> {
  /** A stream has ended, or could not even be tried. */
  ended(endpoint: string, outcome: Outcome): void;
  /** The manager serves. */
  clear(): void;
}

export function createManagerTrouble(log: Logger): ManagerTrouble {
  let trouble: string | undefined;
  let loggedTrouble: string | undefined;
  return {
    get trouble() {
      return trouble;
    },
    clear() {
      trouble = undefined;
      loggedTrouble = undefined;
    },
    ended(endpoint, { error, redirect }) {
      // Who names the leader has believed us.
      if (redirect !== undefined) trouble = undefined;
      else if (error !== undefined) trouble = reasonOf(error, endpoint);
      if (!isRefusal(error) && !isAccessError(error)) {
        log.info({ endpoint, redirect, reason: error?.message }, "stream to the manager ended");
        return;
      }
      if (loggedTrouble !== trouble)
        log.warn({ endpoint, reason: trouble }, "no way to the manager; keeping the routes in force and trying again");
      loggedTrouble = trouble;
    },
  };
}

/** A file of the identity cannot be read. */
export function isAccessError(error: unknown): error is MeshError {
  return isMeshError(error, "TOKEN_UNREADABLE") || isMeshError(error, "MANAGER_CA_UNREADABLE");
}
