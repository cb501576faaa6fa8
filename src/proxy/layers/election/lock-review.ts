// Whether the operator may use its lock under the name that it has upstream, which RBAC pinned by resourceNames does not
// know. Asked beside the first request for the renamed lock and told to the manager, so that users read it in a condition and
// do not find it by an outage. Invariants: no request waits for it and none is refused by it; a request for the lock that went
// well counts more than an older review; it is asked again only when the lock is used. What is known, and what follows from it, is
// lock-knowledge's. Made by the election layer, one for each name that the lock has upstream.
import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import type { ResourceInfo, ResourceVerb } from "../../../kube/request-info.ts";
import type { Handler } from "../../http/handler.ts";
import type { ResourceCall } from "../../http/resource-call.ts";
import type { LeaderSink, LockReview } from "../../session/session.ts";
import { askAccess } from "./lock-access.ts";
import {
  isDue,
  type Knowledge,
  type LockEvent,
  NOTHING_KNOWN,
  neededVerbs,
  step,
  type Verdict,
  verdict,
} from "./lock-knowledge.ts";

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

export function createLockReviewer({ lockName, sink, clock, log }: LockReviewOptions): LockReviewer {
  /** By kind of lock object. */
  const known = new Map<string, Knowledge>();
  let told: LockReview | null = null;
  let over = false;

  const take = (resource: string, event: LockEvent): Knowledge => {
    const now = step(known.get(resource) ?? NOTHING_KNOWN, event);
    known.set(resource, now);
    return now;
  };
  const tell = () => {
    const review = over ? null : worstOf([...known].map(([resource, of]) => reviewOf(resource, lockName, verdict(of))));
    if (isSame(told, review)) return;
    logChange(log, told, review);
    told = review;
    sink.setLockReview(review);
  };
  const ask = async (call: ResourceCall, of: Knowledge, next: Handler): Promise<LockEvent> => {
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
        return { kind: "unanswered" };
      }
      if (answer.allowed) continue;
      denied.add(verb);
      reason ||= answer.reason;
    }
    return { kind: "reviewed", denied, reason };
  };

  return {
    sent(call, next) {
      if (isNoElectors(call.info)) return;
      const resource = resourceOf(call.info);
      const used = take(resource, { kind: "used", verb: call.info.verb });
      const nowMs = clock.monotonicMs();
      if (over || !isDue(used, nowMs)) return;
      void ask(call, take(resource, { kind: "asked", nowMs }), next).then((event) => {
        take(resource, event);
        tell();
      });
    },
    answered(info, status) {
      if (isNoElectors(info)) return;
      take(resourceOf(info), { kind: "answered", verb: info.verb, status });
      tell();
    },
    end() {
      over = true;
      tell();
    },
  };
}

// It names no object: what comes of it says nothing about the lock by its name.
function isNoElectors({ verb }: ResourceInfo): boolean {
  return verb === "deletecollection";
}

function reviewOf(resource: string, lockName: string, told: Verdict | undefined): LockReview | null {
  return told === undefined ? null : { lockName, resource, ...told };
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
