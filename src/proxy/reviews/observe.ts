// Metrics and the access log of the calls of webhooks. Invariants: each call counts once, at the head of its
// answer, and waits for nothing; the main thread, which has the metrics, gets few messages.
import type { Clock, Timer } from "../../base/clock.ts";
import { plainText } from "../../base/plain-text.ts";
import type { AccessLog } from "../observe/access-log.ts";
import type { ReviewCall, ReviewLayer, ReviewResult } from "./review-call.ts";
import type { Observation } from "./thread-messages.ts";

export interface ObserveDeps {
  readonly metrics: Pick<Observations, "answered">;
  readonly accessLog: Pick<AccessLog, "pick">;
  readonly clock: Clock;
}

/** Stands outside of `rescue`, whose answers have results too. */
export function observe({ metrics, accessLog, clock }: ObserveDeps): ReviewLayer {
  return (next) => async (call) => {
    const write = accessLog.pick();
    const startedMs = clock.monotonicMs();
    const reply = await next(call);
    const seconds = (clock.monotonicMs() - startedMs) / 1_000;
    const { record } = call;
    metrics.answered(record.result ?? "failed", record.peerNames !== undefined, seconds);
    write?.({ direction: "webhook", code: reply.status, seconds, ...fieldsOf(call) });
    return reply;
  };
}

/** The longest name that Kubernetes accepts for most objects. Anybody can send more, and records are kept. */
const MAX_CHARS = 253;

// Never the query, a header or a body.
function fieldsOf({ method, target, record: { subject, result, subset, peerNames, rule } }: ReviewCall): object {
  const path = shown(target.split("?", 1)[0]);
  const common = { decision: result, fromPeer: peerNames !== undefined, path };
  if (subject === undefined) return { ...common, method };
  const { operation, dryRun } = subject;
  const [uid, namespace, name] = [subject.uid, subject.namespace, subject.name].map(shown);
  const [group, resource] = [subject.resource.group, subject.resource.resource].map(shown);
  return { ...common, uid, operation, group, resource, namespace, name, dryRun, subset, rule };
}

function shown(text = ""): string {
  return plainText(text, MAX_CHARS);
}

export type Observations = ReturnType<typeof createObservations>;

/** The main thread counts this many calls in a fraction of a millisecond. */
const MAX_GATHERED = 64;
/** A scrape may lack the calls of this time, and so much is lost if the thread ends by itself. */
const SEND_MS = 250;

export function createObservations(send: (observations: readonly Observation[]) => void, clock: Clock) {
  let gathered: Observation[] = [];
  let timer: Timer | undefined;
  const flush = () => {
    timer?.cancel();
    timer = undefined;
    if (gathered.length > 0) send(gathered);
    gathered = [];
  };
  return {
    answered(result: ReviewResult, isFromPeer: boolean, seconds: number): void {
      gathered.push({ result, isFromPeer, seconds });
      if (gathered.length >= MAX_GATHERED) flush();
      else timer ??= clock.after(SEND_MS, flush);
    },
    flush,
  };
}
