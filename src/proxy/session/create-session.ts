// The proxy's session with the manager: one object that the pipeline asks (Session), tells who leads (LeaderSink) and the
// process runs (Runnable). It is ready at once: with the stored snapshot, or without one until the manager sends it.
import { join } from "node:path";
import { type ChannelCredentials, credentials as grpcCredentials } from "@grpc/grpc-js";
import type { BackoffOptions } from "../../base/backoff.ts";
import type { Clock, Random } from "../../base/clock.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import type { Logger } from "../../base/log.ts";
import type { Registry } from "../../base/metrics.ts";
import { loadMeshService } from "../../wire/load-proto.ts";
import type { PodRef, ReportMessage } from "../../wire/messages.ts";
import { createEnforcer } from "./enforcer.ts";
import { helloOf } from "./hello.ts";
import { createMeshClient } from "./mesh-client.ts";
import type { LeaderSink, Session } from "./session.ts";
import { createSessionMetrics } from "./session-metrics.ts";
import { createSnapshotFile } from "./snapshot-file.ts";
import { createSnapshotIntake } from "./snapshot-intake.ts";

export interface SessionConfig {
  /** host:port of the manager's gRPC service. */
  readonly manager: string;
  readonly podNamespace: string;
  readonly podName: string;
  /** "" if not known. */
  readonly podUid: string;
  /** Folder for the last good snapshot; the proxy's own. */
  readonly dataDir: string;
}

export interface SessionDeps {
  readonly config: SessionConfig;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
  readonly registry: Registry;
  /** How to trust the manager and prove who we are; default plain text, for the loopback only. */
  readonly credentials?: ChannelCredentials;
  readonly proxyVersion?: string;
  readonly backoff?: BackoffOptions;
}

/** Name of the stored snapshot in the data folder. */
export const SNAPSHOT_FILE_NAME = "snapshot.json";

export function createSession(deps: SessionDeps): Session & LeaderSink & Runnable {
  const { config, log, clock, random } = deps;
  const pod: PodRef = { namespace: config.podNamespace, name: config.podName, uid: config.podUid };
  const metrics = createSessionMetrics(deps.registry);
  const enforcer = createEnforcer((error) => log.error({ err: error }, "a part of the proxy failed to follow a new route"));
  const stopping = new AbortController();
  const file = createSnapshotFile({ path: join(config.dataDir, SNAPSHOT_FILE_NAME), pod, log });
  const intake = createSnapshotIntake({ pod, enforcer, file, metrics, clock, log, signal: stopping.signal });
  const client = createMeshClient({
    manager: config.manager,
    credentials: deps.credentials ?? grpcCredentials.createInsecure(),
    service: loadMeshService(),
    intake,
    hello() {
      const version = enforcer.current?.snapshot.version ?? 0;
      return helloOf({ pod, proxyVersion: deps.proxyVersion ?? "", version, held: intake.held });
    },
    metrics,
    clock,
    random,
    log,
    ...(deps.backoff === undefined ? {} : { backoff: deps.backoff }),
  });
  let report: ReportMessage = { leader: false, lock: null };
  const tell = (news: Partial<ReportMessage>) => {
    report = { ...report, ...news };
    client.report(report);
  };
  let running: Promise<void> = Promise.resolve();

  return {
    name: "session",
    get current() {
      return enforcer.current;
    },
    onChange: enforcer.onChange,
    beginWrite: enforcer.beginWrite,
    setLeader(value) {
      if (value === report.leader) return;
      metrics.leader.set(value ? 1 : 0);
      tell({ leader: value });
    },
    setLockReview: (lock) => tell({ lock }),
    async start(signal) {
      await intake.restore();
      // Not ended by `signal` itself: while the process drains, what is enforced still follows the manager.
      if (signal.aborted) return;
      running = client.run(stopping.signal);
      running.catch((error: unknown) => log.error({ err: error }, "session ended"));
    },
    async stop() {
      stopping.abort();
      await running.catch(() => undefined);
      await intake.idle();
    },
  };
}
