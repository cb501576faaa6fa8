// Metrics and the access log of the calls of webhooks. Invariant: each call counts once, at the head of its answer. Outside of `rescue`, whose answers
// have results too.
import type { Clock } from "../../base/clock.ts";
import type { AccessLog } from "../observe/access-log.ts";
import type { ReviewCall, ReviewLayer } from "./review-call.ts";
import type { WebhookMetrics } from "./webhook-metrics.ts";

export interface ObserveDeps {
  readonly metrics: WebhookMetrics;
  readonly accessLog: Pick<AccessLog, "pick">;
  readonly clock: Clock;
}

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

// Never the query, a header or a body.
function fieldsOf({ method, target, record: { subject, result, subset, peerNames, rule } }: ReviewCall): object {
  const common = { decision: result, fromPeer: peerNames !== undefined, path: target.split("?", 1)[0] };
  if (subject === undefined) return { ...common, method };
  const { uid, operation, namespace, name, dryRun } = subject;
  const { group, resource } = subject.resource;
  return { ...common, uid, operation, group, resource, namespace, name, dryRun, subset, rule };
}
