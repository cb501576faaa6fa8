// Learns from the API server's answers whether RBAC lets the operator use its lock by its name upstream: a
// Role with resourceNames may allow only the operator's own name of the lock. No request waits for this.
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "../../../base/log.ts";
import { plainText } from "../../../base/plain-text.ts";
import { resourceName } from "../../../kube/client/resource.ts";
import type { ResourceInfo, ResourceVerb } from "../../../kube/request-info.ts";
import type { LockAccessMessage } from "../../../mesh/contract/messages.ts";
import type { Report } from "../../session/session.ts";

export type AccessTracker = ReturnType<typeof createAccessTracker>;

/** What is known of one kind of lock object. */
interface Sight {
  /** The denied verbs, with the authorizer's reasons. */
  readonly denied: ReadonlyMap<ResourceVerb, string>;
  /** An answer showed the lock since a verb was last denied. */
  readonly isReached: boolean;
}

const UNKNOWN: Sight = { denied: new Map(), isReached: false };
/** The order in which verbs are reported. */
const VERBS = ["get", "create", "update", "patch", "list", "watch", "delete"] as const;
/** The authorizer's own words (apiserver, responsewriters.Forbidden). Quotas have others. */
const BY_AUTHORIZER = / is forbidden: (User ".*)/s;
/** The reason goes into a condition. */
const MAX_REASON_CHARS = 256;

/** @param lockName NAME---SUBSET */
export function createAccessTracker(lockName: string, report: Report, log: Logger) {
  const known = new Map<string, Sight>();
  let reported: LockAccessMessage | null = null;
  let isOver = false;

  const tell = (access: LockAccessMessage | null) => {
    if (isDeepStrictEqual(reported, access)) return;
    logChange(log, reported, access);
    reported = access;
    report("lock", access);
  };
  return {
    /** The API server has answered a request for the renamed lock. @param message of a Status, or "" */
    answered(info: ResourceInfo, status: number, message: string): void {
      // A deletecollection names no object. No elector needs it.
      if (isOver || info.verb === "deletecollection") return;
      const resource = resourceName(info);
      known.set(resource, sightAfter(known.get(resource) ?? UNKNOWN, info.verb, status, message));
      tell(worstOf([...known].map(([resource, sight]) => accessOf(lockName, resource, sight))));
    },
    /** The lock has another name from now on. Later answers about this name do not count. */
    end(): void {
      isOver = true;
      tell(null);
    },
  };
}

function sightAfter(before: Sight, verb: ResourceVerb, status: number, message: string): Sight {
  // These answers come before, or instead of, the authorizer's decision.
  if (status === 401 || status === 429 || status >= 500) return before;
  const denied = new Map(before.denied);
  const showsLock = status < 300 || status === 409;
  if (status === 403) {
    const reason = BY_AUTHORIZER.exec(message)?.[1];
    if (reason === undefined) return before;
    denied.set(verb, plainText(reason, MAX_REASON_CHARS));
  } else {
    denied.delete(verb);
    // The lock exists, so no elector has to create it.
    if (showsLock && verb !== "delete") denied.delete("create");
    // A leader of client-go sends updates only: no get would clear one that was denied for a moment.
    if (status < 300 && (verb === "update" || verb === "patch")) denied.delete("get");
  }
  // If no verb is denied and the lock is not there yet, the next answer shows whether it may be created.
  return { denied, isReached: denied.size === 0 && (showsLock || before.isReached) };
}

function accessOf(lockName: string, resource: string, sight: Sight): LockAccessMessage | null {
  const denied = new Set(sight.denied.keys());
  if (denied.size === 0 && !sight.isReached) return null;
  // An elector that may not get the lock tries nothing else, and a Role without get lacks update too.
  if (denied.has("get") && !denied.has("patch")) denied.add("update");
  const deniedVerbs = VERBS.filter((verb) => denied.has(verb));
  const [reason = ""] = deniedVerbs.flatMap((verb) => sight.denied.get(verb) ?? []);
  return { lockName, resource, deniedVerbs, reason };
}

// An operator may use two kinds of lock objects at the same time. A denied one counts more.
function worstOf(accesses: readonly (LockAccessMessage | null)[]): LockAccessMessage | null {
  const known = accesses.filter((access) => access !== null);
  return known.find(isDenied) ?? known[0] ?? null;
}

function isDenied(access: LockAccessMessage): boolean {
  return access.deniedVerbs.length > 0;
}

function logChange(log: Logger, before: LockAccessMessage | null, now: LockAccessMessage | null): void {
  if (now === null) return;
  const { lockName, resource, deniedVerbs, reason } = now;
  if (isDenied(now)) {
    log.warn(
      { lock: lockName, resource, verbs: deniedVerbs, reason },
      "RBAC does not allow the operator to use its lock by its name upstream: it cannot lead",
    );
  } else if (before !== null && isDenied(before)) {
    log.info({ lock: lockName, resource }, "the operator may use its lock");
  }
}
