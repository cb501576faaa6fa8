// Whether the operator may use its lock under the name that it has upstream, which RBAC pinned by resourceNames does not
// know. Asked beside the first request for the renamed lock and told to the manager, so that users read it in a condition and
// do not find it by an outage. Invariants: no request waits for it and none is refused by it; a request for the lock that went
// well counts more than an older review; it is asked again only when the lock is used. Made by the election layer, one for each
// name that the lock has upstream.
import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import type { ResourceInfo, ResourceVerb } from "../../../kube/request-info.ts";
import type { LeaderSink, LockReview } from "../../session/session.ts";
import type { Handler } from "../handler.ts";
import type { ResourceCall } from "../resource-call.ts";
import { askAccess } from "./lock-access.ts";

export interface LockReviewer {
  /** A request for the renamed lock was sent. */
  sent(call: ResourceCall, ask: Handler): void;
  /** It was answered. */
  answered(info: ResourceInfo, status: number): void;
  /** The pod has another lock now: whatever is still under way says nothing. */
  end(): void;
}

export interface LockReviewOptions {
  /** NAME---SUBSET. */
  readonly lockName: string;
  readonly sink: Pick<LeaderSink, "setLockReview">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Denied or without an answer: asked again after this time, when the lock is used, so that a mended Role is noticed. */
const RETRY_MS = 60_000;
/** Asked again because the API server did something else than it said: not sooner than this. */
const CONTRADICTED_MS = 2_000;

/** What is known about one kind of lock object. */
interface Knowledge {
  readonly used: Set<ResourceVerb>;
  /** By the reviews; undefined while there is no whole answer. */
  denied: ReadonlySet<ResourceVerb> | undefined;
  reason: string;
  /** Verbs whose last request was answered 403. */
  readonly refused: Set<ResourceVerb>;
  /** The lock is there: whoever may not create it has no need to. */
  exists: boolean;
  /** A request for the lock has been answered. */
  tried: boolean;
  askedMs: number | undefined;
  asking: boolean;
  /** Something has happened that the last answer does not explain. */
  contradicted: boolean;
}

export function createLockReviewer({ lockName, sink, clock, log }: LockReviewOptions): LockReviewer {
  const known = new Map<string, Knowledge>();
  let told: LockReview | null = null;
  let over = false;

  const knowledgeOf = (resource: string): Knowledge => {
    const have = known.get(resource) ?? nothing();
    known.set(resource, have);
    return have;
  };
  const tell = () => {
    const review = over ? null : worstOf([...known].map(([resource, of]) => reviewOf(resource, lockName, of)));
    if (isSame(told, review)) return;
    logChange(log, told, review);
    told = review;
    sink.setLockReview(review);
  };
  const ask = async (call: ResourceCall, of: Knowledge, next: Handler) => {
    const { group, version, resource, namespace } = call.info;
    const denied = new Set<ResourceVerb>();
    let reason = "";
    // One after the other: they are in no hurry, and need one connection.
    for (const verb of neededVerbs(of.used)) {
      const place = { group, version, resource, namespace, name: lockName, verb };
      const answer = await askAccess(place, { caller: call.headers, ask: next, clock });
      if (answer === undefined) {
        if (of.denied === undefined)
          log.warn({ lock: lockName, resource, verb }, "the API server does not say whether the operator may use its lock");
        return;
      }
      if (answer.allowed) continue;
      denied.add(verb);
      reason ||= answer.reason;
    }
    of.denied = denied;
    of.reason = reason;
  };

  return {
    sent(call, next) {
      const of = knowledgeOf(resourceOf(call.info));
      if (!neededVerbs(of.used).includes(call.info.verb)) of.contradicted = true;
      of.used.add(call.info.verb);
      if (over || !isDue(of, clock.monotonicMs())) return;
      of.asking = true;
      of.contradicted = false;
      of.askedMs = clock.monotonicMs();
      ask(call, of, next).finally(() => {
        of.asking = false;
        tell();
      });
    },
    answered(info, status) {
      const of = knowledgeOf(resourceOf(info));
      takeAnswer(of, info.verb, status);
      tell();
    },
    end() {
      over = true;
      tell();
    },
  };
}

function nothing(): Knowledge {
  return {
    used: new Set(),
    denied: undefined,
    reason: "",
    refused: new Set(),
    exists: false,
    tried: false,
    askedMs: undefined,
    asking: false,
    contradicted: false,
  };
}

function isDue(of: Knowledge, nowMs: number): boolean {
  if (of.asking) return false;
  if (of.askedMs === undefined) return true;
  const sinceMs = nowMs - of.askedMs;
  if (of.contradicted) return sinceMs >= CONTRADICTED_MS;
  return (of.denied === undefined || deniedNow(of).length > 0) && sinceMs >= RETRY_MS;
}

function takeAnswer(of: Knowledge, verb: ResourceVerb, status: number): void {
  const isGood = status === 200 || status === 201;
  of.tried = true;
  if (isGood || status === 409) of.exists = true;
  if (status === 404 || (isGood && verb === "delete")) of.exists = false;
  if (status === 403) {
    of.refused.add(verb);
    if (of.denied !== undefined && !of.denied.has(verb)) of.contradicted = true;
    return;
  }
  if (status === 401 || status === 429 || status >= 500) return; // not looked at by the authorizer, perhaps
  of.refused.delete(verb);
  if (!of.denied?.has(verb)) return;
  of.denied = of.denied.difference(new Set([verb]));
  of.contradicted = true;
}

// What an elector needs. Of update and patch most use the one or the other: update is assumed until it is known.
function neededVerbs(used: ReadonlySet<ResourceVerb>): ResourceVerb[] {
  const writes: ResourceVerb[] = used.has("patch") ? (used.has("update") ? ["update", "patch"] : ["patch"]) : ["update"];
  return ["get", "create", ...writes, ...[...used].filter((verb) => verb === "delete" || verb === "list" || verb === "watch")];
}

// A 403 alone may have other reasons (a namespace that ends): it counts where the API server answers no reviews.
function deniedNow({ used, denied, refused, exists }: Knowledge): ResourceVerb[] {
  const verbs = denied ?? refused;
  return neededVerbs(used).filter((verb) => verbs.has(verb) && !(verb === "create" && exists));
}

// Before the lock itself was answered it is not known whether it has to be created; before the first reviews were, a refusal
// says only the half of it.
function reviewOf(resource: string, lockName: string, of: Knowledge): LockReview | null {
  if (!of.tried || (of.asking && of.denied === undefined)) return null;
  const deniedVerbs = deniedNow(of);
  if (of.denied === undefined && deniedVerbs.length === 0) return null;
  return { lockName, resource, deniedVerbs, reason: deniedVerbs.length === 0 ? "" : of.reason };
}

// Of two locks that an operator uses at once the denied one is told.
function worstOf(reviews: readonly (LockReview | null)[]): LockReview | null {
  const answered = reviews.filter((review) => review !== null);
  return answered.find(({ deniedVerbs }) => deniedVerbs.length > 0) ?? answered[0] ?? null;
}

function isSame(a: LockReview | null, b: LockReview | null): boolean {
  if (a === null || b === null) return a === b;
  return a.resource === b.resource && a.reason === b.reason && a.deniedVerbs.join() === b.deniedVerbs.join();
}

function logChange(log: Logger, before: LockReview | null, now: LockReview | null): void {
  const wasDenied = before !== null && before.deniedVerbs.length > 0;
  if (now !== null && now.deniedVerbs.length > 0) {
    const { lockName, resource, deniedVerbs, reason } = now;
    log.warn(
      { lock: lockName, resource, verbs: deniedVerbs, reason },
      "RBAC does not allow the operator to use its lock by its name upstream: it cannot lead",
    );
  } else if (wasDenied && now !== null) {
    log.info({ lock: now.lockName, resource: now.resource }, "the operator may use its lock");
  }
}

/** As in a Role: "leases.coordination.k8s.io", "configmaps". */
function resourceOf({ group, resource }: ResourceInfo): string {
  return group === "" ? resource : `${resource}.${group}`;
}
