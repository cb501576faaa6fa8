// Reads from the audit log how the operators' informers list and watch, and decides whether a wait of
// client-go explains late work. Pure. Called by wait-converged.ts and run-chaos.ts.
//
// client-go's reflector waits before each list after the first: 0.8 s, doubled each time up to 30 s, and at
// random up to twice that. It resets after two minutes (k8s.io/client-go/tools/cache,
// NewReflectorWithOptions). Each watch that must list again and each refused connection causes such a wait.
import type { AuditEvent } from "../support/kube.ts";
import { isRead, microTimeMs, podOf } from "../support/mesh/pod-writes.ts";

/** The kinds that an operator works on, with one informer each. */
export const KINDS = ["foos", "configmaps"] as const;
/** The time limit for an operator's work after its informers have sent their requests. */
const WORK_MS = 10_000;

/** One list or watch. */
export interface ApiRead {
  readonly pod: string;
  readonly kind: string;
  readonly sentMs: number;
  /** Infinity for a watch that is still open. */
  readonly endedMs: number;
}

/** The leader of a subset. */
export interface Leader {
  readonly pod: string;
  /** When this pod became leader. Its informers start at this time. */
  readonly sinceMs: number;
}

/**
 * All lists and watches, oldest first.
 * @param serverSinceMs the start of the API server, which ended all earlier requests
 */
export function readsOf(events: readonly AuditEvent[], serverSinceMs: number): ApiRead[] {
  const reads = new Map<string, ApiRead>();
  for (const event of events) {
    const pod = podOf(event);
    if (pod === undefined || !isRead(event)) continue;
    const sentMs = microTimeMs(event.requestReceivedTimestamp);
    // A killed API server does not log the end of its requests.
    const lastsMs = sentMs < serverSinceMs ? serverSinceMs : Number.POSITIVE_INFINITY;
    const endedMs = event.stage === "ResponseStarted" ? lastsMs : microTimeMs(event.stageTimestamp);
    reads.set(event.auditID, { pod, kind: event.objectRef?.resource ?? "", sentMs, endedMs });
  }
  return [...reads.values()].sort((a, b) => a.sentMs - b.sentMs);
}

export interface LateSubset {
  /** The leader of the subset that owns the work; undefined if the lock has no holder. */
  readonly leader: Leader | undefined;
  readonly reads: readonly ApiRead[];
  /** When ownership converged. */
  readonly ownedMs: number;
  /**
   * The number of watches that the leader's proxy has refused after ownership converged, because the client
   * must list again. Refused watches are not in the audit log.
   */
  readonly refused: number;
  readonly nowMs: number;
}

/** The reason why late work should be complete; undefined if client-go waits, or has just sent a request. */
export function whyLate({ leader, reads, ownedMs, refused, nowMs }: LateSubset): string | undefined {
  if (leader === undefined) return "the owner has no leader";
  const { pod, sinceMs } = leader;
  if (refused > KINDS.length)
    return `the proxy of ${pod}, the owner's leader, has refused ${refused} watches since ${timeOf(ownedMs)}`;
  const lasts = KINDS.map((kind) => reads.findLast((one) => one.pod === pod && one.kind === kind && one.sentMs >= sinceMs));
  if (lasts.some((last) => nowMs - (last?.sentMs ?? sinceMs) <= WORK_MS)) return undefined;
  const sleeps = (last: ApiRead | undefined) => last !== undefined && last.endedMs <= nowMs && last.sentMs < ownedMs;
  if (lasts.some(sleeps)) return undefined;
  const requests = KINDS.map((kind, index) => `${kind} ${readText(lasts[index], nowMs)}`);
  return `${pod} has led the owner since ${timeOf(sinceMs)}; it requested ${requests.join(" and ")}; ownership converged at ${timeOf(ownedMs)}, now it is ${timeOf(nowMs)}`;
}

function readText(last: ApiRead | undefined, nowMs: number): string {
  if (last === undefined) return "never";
  return `last at ${timeOf(last.sentMs)}, ${last.endedMs > nowMs ? "watching" : `ended at ${timeOf(last.endedMs)}`}`;
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}

/** The longest time for which an informer of a leader sent no request and had no open watch. */
export function longestSleepMs(reads: readonly ApiRead[], leaders: readonly Leader[], fromMs: number, toMs: number): number {
  const sleeps = leaders.flatMap(({ pod, sinceMs }) =>
    KINDS.flatMap((kind) => {
      let awakeMs = Math.max(fromMs, sinceMs);
      const own = reads.filter((one) => one.pod === pod && one.kind === kind && one.sentMs >= sinceMs && one.sentMs < toMs);
      const gaps = own.map(({ sentMs, endedMs }) => {
        const gapMs = sentMs - awakeMs;
        awakeMs = Math.max(awakeMs, endedMs);
        return gapMs;
      });
      return [...gaps, toMs - awakeMs];
    }),
  );
  return Math.max(0, ...sleeps);
}
