// The main of the example operator: all parts that an operator on the controller runtime needs, and no others. Every replica fills its stores,
// and the controller runs in the leader. At SIGTERM the leader finishes running reconciles, releases the lease and ends with 0; a replica that
// loses the lease ends with 1, and the kubelet starts it again.

import { randomUUID } from "node:crypto";
import {
  createControllerMetrics,
  createEventRecorder,
  createHealthServer,
  createInformers,
  createKubeClient,
  createLeaderElector,
  createLogger,
  createRegistry,
  loadConnection,
  MeshError,
  processEnv,
  type Runnable,
  type RunOptions,
  runGroups,
  runMain,
  systemClock,
  systemRandom,
} from "../../src/runtime/index.ts";
import { addGreetingController } from "./add.ts";
import { GREETINGS } from "./greeting.ts";
import { type OperatorConfig, operatorCommandLine } from "./settings.ts";

const NAME = "greeting-operator";
const VERSION = "1.0.0";

async function run(config: OperatorConfig, { signal, onReady }: RunOptions): Promise<void> {
  const { namespace, podName, leaseDurationMs, healthListen } = config;
  const log = createLogger({ name: NAME, level: config.logLevel });
  const common = { clock: systemClock, random: systemRandom, log };
  const registry = createRegistry(NAME, VERSION);
  const kubeconfig = config.kubeconfig === "" ? {} : { kubeconfig: config.kubeconfig };
  const client = createKubeClient(
    await loadConnection({ env: processEnv(), userAgent: `${NAME}/${VERSION} ${podName}`, ...kubeconfig }),
  );
  const informers = createInformers({ client, ...common });
  const events = createEventRecorder({ client, component: NAME, instance: podName, ...common });
  const metrics = createControllerMetrics(registry);
  const controller = addGreetingController({ client, informers, events, metrics, clock: systemClock, log, podName, namespace });
  const greetings = informers.store(GREETINGS);
  const notReady = () => (greetings.hasSynced ? undefined : "Greetings have not been listed yet");
  const health = createHealthServer({ listen: healthListen, registry, notReady });

  const lost = new AbortController();
  const elector = createLeaderElector({
    client,
    namespace,
    name: NAME,
    identity: `${podName}_${randomUUID()}`,
    leaseDurationMs,
    renewDeadlineMs: (leaseDurationMs * 2) / 3,
    retryPeriodMs: (leaseDurationMs * 2) / 15,
    callbacks: {
      onStartedLeading: (leading) => runGroups([[controller]], { signal: leading, log }),
      // A controller runs only once. After a lost lease the process ends, so that the next one starts without old state.
      onStoppedLeading: () => lost.abort(new MeshError("LEADERSHIP_LOST", "leading: the lease is lost")),
    },
    ...common,
  });
  const connection: Runnable = { name: "client", start: async () => undefined, stop: () => client.close() };
  const ready: Runnable = {
    name: "ready",
    start: async () => onReady({ health: `http://127.0.0.1:${health.port}` }),
    stop: async () => undefined,
  };
  // These stop in reverse order: the controller with its lease, then the Events, the connection last.
  await runGroups(
    [
      [connection, health],
      [informers, events],
      [elector, ready],
    ],
    {
      signal: AbortSignal.any([signal, lost.signal]),
      log,
    },
  );
  if (!signal.aborted) throw lost.signal.reason;
}

await runMain(operatorCommandLine, process.argv.slice(2), processEnv(), run);
