// The main thread's side of the listener for the operator's webhooks: answers the questions of its thread
// about routes, policies and the mesh's certificate, and counts its calls.
import { errorMessage } from "../../base/errors.ts";
import { Counter, Gauge, Histogram, type Registry } from "../../base/metrics.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { MeshTrustStore } from "../identity/manager-access.ts";
import type { ServingCertificate } from "../identity/serving-certificate.ts";
import type { AccessLog } from "../observe/access-log.ts";
import type { Peers } from "../session/peers-handler.ts";
import type { Session } from "../session/session.ts";
import { MAX_TIMEOUT_MS } from "./choose-peer.ts";
import { createPlacesBefore, type DecideDeps, decideReview, type ReviewDecision, type ReviewQuestion } from "./decide-review.ts";
import { createReviewThread, type ReviewThread } from "./review-thread.ts";
import type { CertificateState, Observation, PeerCredentials, WebhooksConfig } from "./thread-messages.ts";

export interface ReviewsSettings {
  readonly webhooks: WebhooksConfig | undefined;
  /** The share of calls that is logged. */
  readonly accessLog: number;
  readonly drainMs: number;
}

export interface ReviewsDeps extends Pick<DecideDeps, "policies">, ProcessContext {
  readonly session: Pick<Session, "current" | "onChange">;
  /** Called often: why there has been no certificate of the operator for a while, or "". */
  readonly report: (problem: string) => void;
  readonly peers: Peers;
  /** Undefined without the mesh's identity: then there are no peers. */
  readonly identity: { readonly certificate: Pick<ServingCertificate, "current">; readonly trust: MeshTrustStore } | undefined;
  readonly accessLog: Pick<AccessLog, "onTapped" | "copy">;
  /** For a client to send a whole request; default: the longest timeout of a webhook. */
  readonly requestMs?: number;
}

export type Reviews = NonNullable<ReturnType<typeof createReviews>>;

/** Undefined if it is switched off. */
export function createReviews(config: ReviewsSettings, deps: ReviewsDeps) {
  const { webhooks, accessLog: accessLogShare, drainMs } = config;
  if (webhooks === undefined) return undefined;
  const { session, peers, accessLog, clock, random, log, requestMs = MAX_TIMEOUT_MS } = deps;
  const before = createPlacesBefore();
  const decide = createDecide({ ...deps, before });
  let certificate: CertificateState | undefined;
  let isTapped = false;
  const metrics = createReviewMetrics(deps.registry, () => certificate?.isThere ?? false);
  const thread: ReviewThread = createReviewThread({
    settings: { ...webhooks, drainMs, requestMs, accessLogShare, logLevel: log.level },
    onStart() {
      thread.post({ kind: "peers", peers: peers.current });
      thread.post({ kind: "tapped", isTapped });
    },
    onMessage(message) {
      switch (message.kind) {
        case "decide":
          return thread.post({ kind: "decided", decisions: message.questions.map(decide) });
        case "credentials":
          void credentialsOf(deps).then((credentials) => thread.post({ kind: "credentials", credentials }));
          return;
        case "observed":
          return metrics.observed(message.observations);
        case "request":
          return accessLog.copy(message.fields);
        case "certificate":
          certificate = message;
          return deps.report(message.report);
        default:
          return message satisfies never;
      }
    },
    onEnd: () => metrics.restarted(),
    clock,
    random,
    log,
  });
  session.onChange((now, last) => {
    before.follow(now, last);
    thread.post({ kind: "routes-changed" });
  });
  peers.onChange(() => thread.post({ kind: "peers", peers: peers.current }));
  accessLog.onTapped((now) => {
    isTapped = now;
    thread.post({ kind: "tapped", isTapped });
  });
  return {
    listen: webhooks.listen,
    server: thread.server,
    /** Why no API server can be answered, with the remedy; undefined if it can. */
    get notReady(): string | undefined {
      if (!thread.isListening)
        return "the operator's webhooks: the thread that serves them is not listening yet; if this lasts, the proxy's log has the reason";
      return certificate?.isThere ? undefined : `the operator's webhooks: ${certificate?.problem}`;
    },
  };
}

function createDecide(deps: DecideDeps & Pick<ReviewsDeps, "log">): (question: ReviewQuestion) => ReviewDecision {
  return (question) => {
    try {
      return decideReview(question, deps);
    } catch (error) {
      deps.log.error({ err: error }, "deciding about a review failed");
      return { kind: "failed" };
    }
  };
}

async function credentialsOf({ identity }: ReviewsDeps): Promise<PeerCredentials | { readonly problem: string }> {
  if (identity === undefined) return { problem: "this proxy has no identity of the mesh, so it has no peers" };
  try {
    const { pem: ca } = await identity.trust.current();
    return { ...identity.certificate.current(), ca };
  } catch (error) {
    return { problem: errorMessage(error) };
  }
}

const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The thread of the listener sends what it observes a moment later. */
function createReviewMetrics(registry: Registry, isReady: () => boolean) {
  const registers = [registry];
  const total = new Counter({
    name: "ctrlmesh_proxy_reviews_total",
    help: "Calls of the operator's webhooks by result, and by who has sent them. A call from a peer is never forwarded again.",
    labelNames: ["result", "from"],
    registers,
  });
  const duration = new Histogram({
    name: "ctrlmesh_proxy_review_duration_seconds",
    help: "From the call of a webhook to the head of its answer.",
    labelNames: ["result"],
    buckets: DURATION_BUCKETS,
    registers,
  });
  const restarts = new Counter({
    name: "ctrlmesh_proxy_webhook_thread_restarts_total",
    help: "How often the thread of the listener for the operator's webhooks has ended by itself and was started again.",
    registers,
  });
  new Gauge({
    name: "ctrlmesh_proxy_webhook_certificate_ready",
    help: "1 if the proxy can serve with the certificate of the operator's webhook server.",
    registers,
    collect() {
      this.set(isReady() ? 1 : 0);
    },
  });
  return {
    observed(observations: readonly Observation[]): void {
      for (const { result, isFromPeer, seconds } of observations) {
        total.inc({ result, from: isFromPeer ? "peer" : "api-server" });
        duration.observe({ result }, seconds);
      }
    },
    restarted: () => restarts.inc(),
  };
}
