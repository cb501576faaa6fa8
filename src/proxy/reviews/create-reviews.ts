// The main thread's side of the listener for the operator's webhooks: answers the questions of its thread
// about routes, policies and the mesh's certificate, and counts its calls.
import { errorMessage } from "../../base/errors.ts";
import type { ListenAddress } from "../../base/listener.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { MeshTrustStore } from "../identity/manager-access.ts";
import type { ServingCertificate } from "../identity/serving-certificate.ts";
import type { AccessLog } from "../observe/access-log.ts";
import type { TrafficServer } from "../server/traffic-server.ts";
import type { Peers } from "../session/peers-handler.ts";
import type { Session } from "../session/session.ts";
import { MAX_TIMEOUT_MS } from "./choose-peer.ts";
import { createPlacesBefore, type DecideDeps, decideReview, type ReviewDecision, type ReviewQuestion } from "./decide-review.ts";
import { createReviewMetrics } from "./review-metrics.ts";
import { createReviewThread, type ReviewThread } from "./review-thread.ts";
import type { CertificateState, PeerCredentials } from "./thread-messages.ts";

export interface ReviewsSettings {
  readonly webhooks: WebhooksConfig | undefined;
  /** The logged share. */
  readonly accessLog: number;
  readonly drainMs: number;
}

export interface WebhooksConfig {
  readonly listen: ListenAddress;
  /** Of the operator's webhook server, on 127.0.0.1. */
  readonly port: number;
  /** The folder with tls.crt and tls.key of the operator's webhook server. */
  readonly certDir: string;
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

export interface Reviews {
  readonly listen: ListenAddress;
  readonly server: TrafficServer;
  /** Why no API server can be answered, with the remedy; undefined if it can. */
  readonly notReady: string | undefined;
}

/** Undefined if it is switched off. */
export function createReviews(config: ReviewsSettings, deps: ReviewsDeps): Reviews | undefined {
  const { webhooks, accessLog: accessLogShare, drainMs } = config;
  if (webhooks === undefined) return undefined;
  const { session, peers, accessLog, clock, random, log, requestMs = MAX_TIMEOUT_MS } = deps;
  const before = createPlacesBefore();
  const decide = createDecide({ ...deps, before });
  let certificate: CertificateState | undefined;
  let isTapped = false;
  const metrics = createReviewMetrics(deps.registry, () => certificate?.isThere ?? false);
  const { listen, port: operatorPort, certDir } = webhooks;
  const thread: ReviewThread = createReviewThread({
    settings: { listen, operatorPort, certDir, drainMs, requestMs, accessLogShare, logLevel: log.level },
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
    listen,
    server: thread.server,
    get notReady() {
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
