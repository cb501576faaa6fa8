// The main thread's side of the listener for the operator's webhooks, if the settings have one: starts its
// thread, and answers its questions about routes, policies and the mesh's certificate. Invariants: the start
// waits for nothing that the operator provides; the end of the thread ends nothing else.
import { extname } from "node:path";
import type { Clock, Random } from "../../base/clock.ts";
import { errorMessage, MeshError } from "../../base/errors.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import type { ListenAddress } from "../../base/listener.ts";
import type { Logger } from "../../base/log.ts";
import type { Registry } from "../../base/metrics.ts";
import type { MeshTrustStore } from "../identity/manager-access.ts";
import type { ServingCertificate } from "../identity/serving-certificate.ts";
import type { AccessLog } from "../observe/access-log.ts";
import type { TrafficServer } from "../server/traffic-server.ts";
import type { Peers } from "../session/peers-handler.ts";
import type { Session } from "../session/session.ts";
import { MAX_TIMEOUT_MS } from "./choose-peer.ts";
import { createPlacesBefore, type DecideDeps, decideReview, type ReviewDecision, type ReviewQuestion } from "./decide-review.ts";
import { createReviewMetrics } from "./review-metrics.ts";
import { createThreadKeeper } from "./thread-keeper.ts";
import type { CertificateState, FromThread, PeerCredentials, ThreadSettings, ToThread } from "./thread-messages.ts";

export interface WebhooksConfig {
  readonly listen: ListenAddress;
  /** Of the operator's webhook server, on 127.0.0.1. */
  readonly port: number;
  /** The folder with tls.crt and tls.key of the operator's webhook server. */
  readonly certDir: string;
}

/** What a proxy shows to other proxies. */
export interface MeshIdentity {
  readonly certificate: Pick<ServingCertificate, "current">;
  readonly trust: MeshTrustStore;
}

export interface ReviewsDeps {
  readonly session: Pick<Session, "current" | "onChange">;
  /** See OperatorCertificateOptions. */
  readonly report: (problem: string) => void;
  readonly peers: Peers;
  /** Undefined without the mesh's identity: then there are no peers. */
  readonly identity: MeshIdentity | undefined;
  readonly accessLog: Pick<AccessLog, "onTapped" | "copy">;
  /** As in AccessLogOptions. */
  readonly accessLogShare: number;
  readonly policies: DecideDeps["policies"];
  readonly registry: Registry;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly drainMs: number;
  /** For a client to send a whole request; default: the longest timeout of a webhook. */
  readonly requestMs?: number;
}

export interface Reviews {
  /** What the server uses: starts before it, and stops after it. */
  readonly clients: readonly Runnable[];
  readonly server: TrafficServer;
  readonly listen: ListenAddress;
  /** Why no API server can be answered, with the remedy; undefined if it can. */
  readonly notReady: string | undefined;
}

/**
 * In MiB. Bodies are no part of the heap and have a bound of their own (read.ts); 256 connections, each with
 * what is read of a review, take some tens. With a small young generation, the bytes that have passed are
 * collected soon.
 */
const HEAP = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 2 };

export function createReviews(config: WebhooksConfig | undefined, deps: ReviewsDeps): Reviews | undefined {
  if (config === undefined) return undefined;
  const { session, peers, accessLog, accessLogShare, clock, random, log, drainMs, requestMs = MAX_TIMEOUT_MS } = deps;
  const before = createPlacesBefore();
  let certificate: CertificateState | undefined;
  let isTapped = false;
  let port = config.listen.port;
  /** The listener is wanted from the start of the server to its drain. */
  let isWanted = false;
  let isListening = false;
  /** What waits for the thread, until it ends. */
  const waits = { started: createWait(), listening: createWait(), drained: createWait() };

  const decide = (questions: readonly ReviewQuestion[]): ReviewDecision[] =>
    questions.map((question) => {
      try {
        return decideReview(question, { ...deps, before });
      } catch (error) {
        log.error({ err: error }, "deciding about a review failed");
        return { kind: "failed" };
      }
    });
  const onMessage = (message: FromThread) => {
    switch (message.kind) {
      case "decide":
        return keeper.post({ kind: "decided", decisions: decide(message.questions) });
      case "credentials":
        void credentialsOf(deps.identity).then((credentials) => keeper.post({ kind: "credentials", credentials }));
        return;
      case "observed":
        return metrics.observed(message.observations);
      case "request":
        return accessLog.copy(message.fields);
      case "certificate":
        certificate = message;
        return deps.report(message.report);
      case "started":
        return waits.started.end();
      case "listening":
        isListening = true;
        port = message.port;
        return waits.listening.end();
      case "not-listening":
        return waits.listening.end(new MeshError("LISTEN_FAILED", message.reason));
      case "drained":
        return waits.drained.end();
      default:
        return message satisfies never;
    }
  };
  const keeper = createThreadKeeper<ToThread, FromThread>({
    file: new URL(`./thread${extname(import.meta.url)}`, import.meta.url),
    workerData: (): ThreadSettings => ({
      listen: { ...config.listen, port },
      operatorPort: config.port,
      certDir: config.certDir,
      drainMs,
      requestMs,
      accessLogShare,
      logLevel: log.level,
    }),
    resourceLimits: HEAP,
    onStart() {
      keeper.post({ kind: "peers", peers: peers.current });
      if (isTapped) keeper.post({ kind: "tapped", isTapped });
      if (isWanted) keeper.post({ kind: "listen" });
    },
    onMessage,
    onEnd() {
      isListening = false;
      metrics.restarted();
      for (const wait of Object.values(waits)) wait.end();
    },
    clock,
    random,
    log,
  });
  const metrics = createReviewMetrics(deps.registry, () => certificate?.isThere ?? false);
  session.onChange((now, last) => {
    before.follow(now, last);
    keeper.post({ kind: "routes-changed" });
  });
  peers.onChange(() => keeper.post({ kind: "peers", peers: peers.current }));
  accessLog.onTapped((now) => {
    isTapped = now;
    keeper.post({ kind: "tapped", isTapped });
  });
  const thread: Runnable = {
    name: "webhook-thread",
    // Also if the first one ends: the next may live, and nothing else may wait for that.
    async start() {
      const started = waits.started.begin();
      keeper.start();
      await started;
    },
    stop: () => keeper.stop(),
  };
  const server: TrafficServer = {
    name: "webhooks",
    get listening() {
      return isWanted && isListening;
    },
    get port() {
      return port;
    },
    async start() {
      isWanted = true;
      keeper.post({ kind: "listen" });
      await waits.listening.begin();
    },
    async stop() {
      isWanted = false;
      keeper.retire();
      if (!isListening) return;
      keeper.post({ kind: "drain" });
      await waits.drained.begin();
      isListening = false;
    },
  };
  return {
    clients: [thread],
    server,
    listen: config.listen,
    get notReady() {
      if (!isListening)
        return "the operator's webhooks: the thread that serves them is not listening yet; if this lasts, the proxy's log has the reason";
      return certificate?.isThere ? undefined : `the operator's webhooks: ${certificate?.problem}`;
    },
  };
}

async function credentialsOf(identity: MeshIdentity | undefined): Promise<PeerCredentials | { readonly problem: string }> {
  if (identity === undefined) return { problem: "this proxy has no identity of the mesh, so it has no peers" };
  try {
    const { pem: ca } = await identity.trust.current();
    return { ...identity.certificate.current(), ca };
  } catch (error) {
    return { problem: errorMessage(error) };
  }
}

/** A wait for a message of the thread. All who wait at the same time get the same result. */
interface Wait {
  /** Resolves, or rejects, with the next `end`. */
  begin(): Promise<void>;
  /** Does nothing if nobody waits. */
  end(error?: Error): void;
}

function createWait(): Wait {
  let running: PromiseWithResolvers<void> | undefined;
  return {
    begin() {
      running ??= Promise.withResolvers<void>();
      return running.promise;
    },
    end(error) {
      if (error === undefined) running?.resolve();
      else running?.reject(error);
      running = undefined;
    },
  };
}
