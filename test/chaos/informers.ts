// How the operators' informers ask, as the API server's audit log has it, and what that excuses. Pure. client-go's reflector waits before
// each list of its own after the first, 0.8 s and twice as long each time, up to 30 s, and by chance up to twice that; it begins anew two
// minutes after it began (k8s.io/client-go/tools/cache, NewReflectorWithOptions). Each watch that is made to list again is such a time, and
// each connection that is refused. Invariant: nothing else than such a wait is an excuse. Called by until-as-asked.ts and run-chaos.ts.
import type { AuditEvent } from "../support/kube.ts";
import { isRead, microTimeMs, podOf } from "../support/mesh/pod-writes.ts";

/** What an operator works on, and has an informer each for. */
export const KINDS = ["foos", "configmaps"] as const;
/** Once its informers have asked, an operator has this long. */
const WORK_MS = 10_000;

/** One list or watch. */
export interface Asking {
  readonly pod: string;
  readonly kind: string;
  readonly askedMs: number;
  /** Infinity: it goes on. */
  readonly endedMs: number;
}

/** Who leads a subset. */
export interface Leader {
  readonly pod: string;
  /** Its informers begin then. */
  readonly sinceMs: number;
}

/** All that was asked, oldest first. @param serverSinceMs when the API server was started: what it was asked before is over */
export function askingsOf(events: readonly AuditEvent[], serverSinceMs: number): Asking[] {
  const askings = new Map<string, Asking>();
  for (const event of events) {
    const pod = podOf(event);
    if (pod === undefined || !isRead(event)) continue;
    const askedMs = microTimeMs(event.requestReceivedTimestamp);
    // An API server that is killed writes no ends.
    const lastsMs = askedMs < serverSinceMs ? serverSinceMs : Number.POSITIVE_INFINITY;
    const endedMs = event.stage === "ResponseStarted" ? lastsMs : microTimeMs(event.stageTimestamp);
    askings.set(event.auditID, { pod, kind: event.objectRef?.resource ?? "", askedMs, endedMs });
  }
  return [...askings.values()].sort((a, b) => a.askedMs - b.askedMs);
}

export interface Circumstance {
  /** Of the subset that is to do the work; undefined: nobody has the lock. */
  readonly leader: Leader | undefined;
  readonly askings: readonly Asking[];
  /** Since when ownership is as asked for. */
  readonly ownedMs: number;
  /** How many watches the leader's proxy has refused since then, for want of a list: the API server never hears of those. */
  readonly refused: number;
  readonly nowMs: number;
}

/** Why work that lags after enough quiet should have been done by now; undefined: client-go waits, or has only just asked. */
export function whyLate({ leader, askings, ownedMs, refused, nowMs }: Circumstance): string | undefined {
  if (leader === undefined) return "nobody leads its owner";
  const { pod, sinceMs } = leader;
  if (refused > KINDS.length)
    return `the proxy of ${pod}, its owner's leader, has refused ${refused} watches since ${timeOf(ownedMs)}`;
  const lasts = KINDS.map((kind) => askings.findLast((one) => one.pod === pod && one.kind === kind && one.askedMs >= sinceMs));
  if (lasts.some((last) => nowMs - (last?.askedMs ?? sinceMs) <= WORK_MS)) return undefined;
  const sleeps = (last: Asking | undefined) => last !== undefined && last.endedMs <= nowMs && last.askedMs < ownedMs;
  if (lasts.some(sleeps)) return undefined;
  const told = KINDS.map((kind, index) => `${kind} ${toldOf(lasts[index], nowMs)}`);
  return `${pod} leads its owner since ${timeOf(sinceMs)}, and asked for ${told.join(" and for ")}; ownership was done at ${timeOf(ownedMs)}, now it is ${timeOf(nowMs)}`;
}

function toldOf(last: Asking | undefined, nowMs: number): string {
  if (last === undefined) return "never";
  return `last at ${timeOf(last.askedMs)}, ${last.endedMs > nowMs ? "and watches" : `over at ${timeOf(last.endedMs)}`}`;
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}

/** The longest that an informer of one of the leaders had asked nothing, and nobody told it anything, between two times. */
export function longestSleepMs(askings: readonly Asking[], leaders: readonly Leader[], fromMs: number, toMs: number): number {
  const sleeps = leaders.flatMap(({ pod, sinceMs }) =>
    KINDS.flatMap((kind) => {
      let awakeMs = Math.max(fromMs, sinceMs);
      const own = askings.filter((one) => one.pod === pod && one.kind === kind && one.askedMs >= sinceMs && one.askedMs < toMs);
      const gaps = own.map(({ askedMs, endedMs }) => {
        const gapMs = askedMs - awakeMs;
        awakeMs = Math.max(awakeMs, endedMs);
        return gapMs;
      });
      return [...gaps, toMs - awakeMs];
    }),
  );
  return Math.max(0, ...sleeps);
}
