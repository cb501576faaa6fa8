// An ordinary operator in TypeScript: a CRD, a reconciler, leader election. It has no mesh code, so that the tests and the demo show how
// the mesh works for any operator.
import { randomUUID } from "node:crypto";
import type { V1ConfigMap } from "@kubernetes/client-node";
import { FOO, type Foo, keyOf, keyOfOwner } from "./foo.ts";
import { createKubernetes } from "./kubernetes.ts";
import { createElection } from "./leader-election.ts";
import { listWatch } from "./list-watch.ts";
import { createLog, type Log } from "./log.ts";
import { createReconciler } from "./reconciler.ts";
import { EXIT_USAGE, HELP, readSettings, type Settings, UsageError } from "./settings.ts";
import { serveWebhook } from "./webhook.ts";
import { createWorkQueue } from "./work-queue.ts";

/** Runs until SIGTERM or SIGINT. @throws when the lease is lost */
async function run(settings: Settings, log: Log, signal: AbortSignal): Promise<void> {
  const { podName } = settings;
  const { api, leases, watch, listFoos, listConfigMaps } = createKubernetes();
  const foos = new Map<string, Foo>();
  const queue = createWorkQueue({ work: createReconciler({ foos, api, podName, log }), log });
  const common = { watch, log, signal };
  if (settings.webhook !== undefined) await serveWebhook({ ...settings.webhook, podName }, signal);

  // Both caches are filled before this pod leads.
  void listWatch(foos, {
    ...common,
    path: `/apis/${FOO.group}/${FOO.version}/${FOO.plural}`,
    list: listFoos,
    onChange: (foo) => queue.add(keyOf(foo)),
  });
  void listWatch(new Map<string, V1ConfigMap>(), {
    ...common,
    path: "/api/v1/configmaps",
    list: listConfigMaps,
    onChange(configMap) {
      const owner = keyOfOwner(configMap);
      if (owner !== undefined) queue.add(owner);
    },
  });

  const election = createElection({ ...settings, api: leases, identity: `${podName}_${randomUUID()}`, log });
  await election.acquire(signal);
  if (signal.aborted) return;
  log.info("leading", { ...settings.lease });
  queue.start();
  await election.hold(signal);
  await queue.stop();
  await election.release();
  log.info("released the lease", { ...settings.lease });
}

function shutdownSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => controller.abort());
  return controller.signal;
}

async function main(): Promise<number> {
  const settings = readSettings(process.argv.slice(2), process.env);
  if (settings === undefined) {
    process.stdout.write(HELP);
    return 0;
  }
  const log = createLog({ pod: settings.podName });
  try {
    await run(settings, log, shutdownSignal());
    return 0;
  } catch (error) {
    // After the loss of the lease the process ends at once: another process may already lead.
    log.error("ended", error);
    return 1;
  }
}

try {
  process.exit(await main());
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`foo-operator: ${error.message}\n`);
  process.exit(EXIT_USAGE);
}
