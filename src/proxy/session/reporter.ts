// Reports what the proxy sees to the manager. Invariants: the last value of each kind is always sent, to each
// new manager too; equal values are not. A paced kind is sent at most once in REPORT_EVERY_MS. Its step from
// or to zero is sent immediately, unless another step was within that time.
import { isDeepStrictEqual } from "node:util";
import type { Clock, Timer } from "../../base/clock.ts";
import { NO_REPORTS, type ReportMessage, type Reports } from "../../mesh/contract/messages.ts";

const REPORT_EVERY_MS = 200;
/** The messages for null. */
const NOTHING: { readonly [K in keyof Reports]?: NonNullable<Reports[K]> } = {
  lock: { lockName: "", resource: "", deniedVerbs: [], reason: "" },
  unnamedLock: { lockName: "", resource: "" },
  shares: { version: 0, shares: [] },
};

/** For each paced kind: whether a change is a step that is sent immediately. */
const STEPS: { readonly [K in keyof Reports]?: (before: Reports[K], after: Reports[K]) => boolean } = {
  backlog: (a, b) => !a.heldNamespaces !== !b.heldNamespaces || !a.drainingWrites !== !b.drainingWrites,
  policies: (a, b) => a.digest !== b.digest || openRules(a) !== openRules(b),
  clusters: (a, b) => a.unreachable.length !== b.unreachable.length,
  // The manager waits for a smaller share before it gives the difference to another pod.
  shares: (a, b) => a?.version !== b?.version,
};

function openRules({ rules }: Reports["policies"]): number {
  return rules.filter(({ opened }) => opened).length;
}

export function createReporter(clock: Clock, send: (report: ReportMessage) => void) {
  const kinds = Object.keys(NO_REPORTS) as (keyof Reports)[];
  const channels = new Map(kinds.map((kind) => [kind, createChannel(kind, clock, send)]));
  const every = [...channels.values()];
  return {
    report<K extends keyof Reports>(kind: K, value: Reports[K]): void {
      channels.get(kind)?.report(value);
    },
    /** Includes initial values, since the process before may have reported others. */
    get all(): readonly ReportMessage[] {
      return every.map(({ last }) => last);
    },
    stop() {
      for (const channel of every) channel.stop();
    },
  };
}

function createChannel<K extends keyof Reports>(kind: K, clock: Clock, send: (report: ReportMessage) => void) {
  const isStep = STEPS[kind];
  const toWire = (sent: Reports[K]) => ({ [kind]: sent ?? NOTHING[kind] }) as unknown as ReportMessage;
  let value = NO_REPORTS[kind];
  let lastSent = value;
  let lastSentMs = Number.NEGATIVE_INFINITY;
  let lastStepMs = Number.NEGATIVE_INFINITY;
  let timer: Timer | undefined;

  const flush = () => {
    timer?.cancel();
    timer = undefined;
    if (isDeepStrictEqual(value, lastSent)) return;
    lastSent = value;
    lastSentMs = clock.monotonicMs();
    send(toWire(lastSent));
  };
  return {
    get last(): ReportMessage {
      return toWire(lastSent);
    },
    report(next: Reports[K]): void {
      value = next;
      if (isDeepStrictEqual(value, lastSent)) return;
      const nowMs = clock.monotonicMs();
      const isUrgent = isStep === undefined || nowMs - lastSentMs >= REPORT_EVERY_MS;
      const isStepNow = isStep?.(lastSent, value) === true;
      if (isUrgent || (isStepNow && nowMs - lastStepMs >= REPORT_EVERY_MS)) {
        if (isStepNow) lastStepMs = nowMs;
        flush();
      } else {
        timer ??= clock.after(lastSentMs + REPORT_EVERY_MS - nowMs, flush);
      }
    },
    stop() {
      timer?.cancel();
    },
  };
}
