// Keeps a stream to the leading manager replica for ever: connects, says hello, hands snapshots to the intake, reports,
// follows redirects, and comes back after any failure with backoff. Invariant: its failures never touch what is in force.
import type { ChannelCredentials, ServiceDefinition } from "@grpc/grpc-js";
import { type BackoffOptions, backoffMs } from "../../base/backoff.ts";
import { type Clock, type Random, sleep } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { HelloMessage, ManagerMessage, ReportMessage } from "../../wire/messages.ts";
import { type MeshStream, openMeshStream } from "./mesh-stream.ts";
import type { SessionMetrics } from "./session-metrics.ts";
import type { SnapshotIntake } from "./snapshot-intake.ts";

export interface MeshClientDeps {
  /** host:port of the manager's service. */
  readonly manager: string;
  readonly credentials: ChannelCredentials;
  readonly service: ServiceDefinition;
  readonly intake: SnapshotIntake;
  /** What to say first, asked anew for each stream. */
  hello(): HelloMessage;
  readonly metrics: SessionMetrics;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly backoff?: BackoffOptions;
}

export interface MeshClient {
  /** Runs until the signal fires. */
  run(signal: AbortSignal): Promise<void>;
  /** Reports what the proxy sees, now if a stream is up, and at the start of every later one. */
  report(report: ReportMessage): void;
}

// A thousand proxies that wait for a manager make some 400 tries a second between them: little beside being late by more.
const BACKOFF: BackoffOptions = { baseMs: 200, maxMs: 3_000 };

interface Outcome {
  readonly error: Error | undefined;
  readonly redirect: string | undefined;
  /** The manager took the hello: the endpoint is good. */
  readonly served: boolean;
}

export function createMeshClient(deps: MeshClientDeps): MeshClient {
  let stream: MeshStream | undefined;
  let report: ReportMessage | undefined;

  const connectOnce = async (endpoint: string, signal: AbortSignal): Promise<Outcome> => {
    let redirect: string | undefined;
    let served = false;
    const onMessage = (message: ManagerMessage) => {
      if ("snapshot" in message && message.snapshot) {
        deps.intake.take(message.snapshot, answersOn(opened));
      } else if ("redirect" in message && message.redirect) {
        redirect = message.redirect.endpoint;
        opened.close();
      }
    };
    const opened = openMeshStream({
      endpoint,
      credentials: deps.credentials,
      service: deps.service,
      hello: { hello: deps.hello() },
      onConnected() {
        served = true;
        deps.metrics.managerConnected.set(1);
      },
      onMessage,
    });
    stream = opened;
    if (report !== undefined) opened.send({ report });
    const stop = () => opened.close();
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    try {
      return { error: await opened.ended, redirect, served };
    } finally {
      signal.removeEventListener("abort", stop);
      stream = undefined;
      deps.metrics.managerConnected.set(0);
    }
  };

  return {
    report(news) {
      report = news;
      stream?.send({ report });
    },
    async run(signal) {
      let endpoint = deps.manager;
      let attempt = 0;
      while (!signal.aborted) {
        const { error, redirect, served } = await connectOnce(endpoint, signal);
        if (signal.aborted) return;
        if (served && redirect === undefined) attempt = 0;
        const isFirstRedirect = redirect !== undefined && attempt === 0;
        deps.log.info({ endpoint, redirect, reason: error?.message }, "stream to the manager ended");
        // Without a redirect back to the service, which knows the living replicas.
        endpoint = redirect ?? deps.manager;
        // One redirect is followed at once; replicas that send each other's proxies around are not hammered.
        const delayMs = isFirstRedirect ? 0 : backoffMs(attempt, deps.backoff ?? BACKOFF, deps.random);
        attempt++;
        if (delayMs > 0) await sleep(deps.clock, delayMs, signal).catch(() => undefined);
      }
    },
  };
}

function answersOn(stream: MeshStream): Parameters<SnapshotIntake["take"]>[1] {
  return {
    ack: (nonce, version) => stream.send({ ack: { nonce, version } }),
    nack: (nonce, version, problems) => stream.send({ nack: { nonce, version, problems } }),
  };
}
