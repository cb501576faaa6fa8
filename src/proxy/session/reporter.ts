// Sends what the proxy sees, coalesced: counts change with every request, and a manager listens to a thousand proxies.
// Invariants: the last value is always sent; who leads and what the lock may do is sent at once; a count's step from or to zero is
// sent at once, unless the last such step was; all else at most once in REPORT_EVERY_MS. Called by the session.
import type { Clock, Timer } from "../../base/clock.ts";
import type { ReportMessage } from "../../wire/messages.ts";

export interface Reporter {
  readonly last: ReportMessage;
  /** Equal values are ignored. */
  tell(news: Partial<ReportMessage>): void;
  stop(): void;
}

const REPORT_EVERY_MS = 200;

export function createReporter(clock: Clock, send: (report: ReportMessage) => void): Reporter {
  let report: ReportMessage = { leader: false, lock: null, held: 0, drainingWrites: 0 };
  let sent = report;
  let sentMs = Number.NEGATIVE_INFINITY;
  let steppedMs = Number.NEGATIVE_INFINITY;
  let timer: Timer | undefined;

  const flush = () => {
    timer?.cancel();
    timer = undefined;
    if (isEqual(report, sent)) return;
    sent = report;
    sentMs = clock.monotonicMs();
    send(report);
  };
  return {
    get last() {
      return report;
    },
    tell(news) {
      report = { ...report, ...news };
      if (isEqual(report, sent)) return;
      const nowMs = clock.monotonicMs();
      const isUrgent = report.leader !== sent.leader || report.lock !== sent.lock;
      if (isUrgent || nowMs - sentMs >= REPORT_EVERY_MS) {
        if (isStep(report, sent)) steppedMs = nowMs;
        flush();
      } else if (isStep(report, sent) && nowMs - steppedMs >= REPORT_EVERY_MS) {
        steppedMs = nowMs;
        flush();
      } else {
        timer ??= clock.after(sentMs + REPORT_EVERY_MS - nowMs, flush);
      }
    },
    stop() {
      timer?.cancel();
    },
  };
}

function isEqual(a: ReportMessage, b: ReportMessage): boolean {
  return a.leader === b.leader && a.lock === b.lock && a.held === b.held && a.drainingWrites === b.drainingWrites;
}

function isStep(a: ReportMessage, b: ReportMessage): boolean {
  return !a.held !== !b.held || !a.drainingWrites !== !b.drainingWrites;
}
