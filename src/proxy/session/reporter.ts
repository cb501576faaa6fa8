// Reports what the proxy sees to the manager, each kind by itself. Invariants: the last value of a kind is
// always sent, to each new manager too; equal values are not. Counts change with every request, and a manager
// listens to a thousand proxies: a kind that is paced is sent at most once in REPORT_EVERY_MS, but its step
// from or to zero immediately, unless the last such step was.
import { isDeepStrictEqual } from "node:util";
import type { Clock, Timer } from "../../base/clock.ts";
import { NO_REPORTS, type ReportMessage, type Reports } from "../../wire/messages.ts";

export interface Reporter {
  report<K extends keyof Reports>(kind: K, value: Reports[K]): void;
  /** The last report of each kind, or its initial value, since the process before may have sent another. */
  readonly all: readonly ReportMessage[];
  stop(): void;
}

const REPORT_EVERY_MS = 200;
/** How null is sent. */
const NOTHING: { readonly [K in keyof Reports]?: NonNullable<Reports[K]> } = {
  lock: { lockName: "", resource: "", deniedVerbs: [], reason: "" },
  unnamedLock: { lockName: "", resource: "" },
};

interface Kind<T> {
  readonly initial: T;
  toWire(value: T): ReportMessage;
  /** Undefined unless the kind is paced: whether the change is a step that is sent immediately. */
  readonly isStep: ((before: T, after: T) => boolean) | undefined;
}

/** The kinds that are paced. */
const STEPS: { readonly [K in keyof Reports]?: (before: Reports[K], after: Reports[K]) => boolean } = {
  backlog: (a, b) => !a.heldNamespaces !== !b.heldNamespaces || !a.drainingWrites !== !b.drainingWrites,
  policies: (a, b) => a.digest !== b.digest || openRules(a) !== openRules(b),
};

function openRules({ rules }: Reports["policies"]): number {
  return rules.filter(({ opened }) => opened).length;
}

function kindOf<K extends keyof Reports>(kind: K): Kind<Reports[K]> {
  const toWire = (value: Reports[K]) => ({ [kind]: value ?? NOTHING[kind] }) as unknown as ReportMessage;
  return { initial: NO_REPORTS[kind], toWire, isStep: STEPS[kind] };
}

export function createReporter(clock: Clock, send: (report: ReportMessage) => void): Reporter {
  const kinds = Object.keys(NO_REPORTS) as (keyof Reports)[];
  const channels = new Map(kinds.map((kind) => [kind, createChannel(kindOf(kind), clock, send)]));
  const every = [...channels.values()];
  return {
    report(kind, value) {
      channels.get(kind)?.report(value);
    },
    get all() {
      return every.map(({ last }) => last);
    },
    stop() {
      for (const channel of every) channel.stop();
    },
  };
}

interface Channel<T> {
  report(value: T): void;
  readonly last: ReportMessage;
  stop(): void;
}

function createChannel<T>({ initial, toWire, isStep }: Kind<T>, clock: Clock, send: (report: ReportMessage) => void): Channel<T> {
  let value = initial;
  let lastSent = initial;
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
    get last() {
      return toWire(lastSent);
    },
    report(next) {
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
