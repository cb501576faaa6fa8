import { expect, test } from "vitest";
import { createFakeClock } from "../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../test/support/fake-kube-client.ts";
import { MeshError } from "../base/errors.ts";
import { silentLogger } from "../base/log.ts";
import { Registry } from "../base/metrics.ts";
import { CONFIG_MAPS, NAMESPACES, PODS } from "../kube/client/resources.ts";
import {
  type ControllerBuilder,
  type ControllerOptions,
  controllerOf,
  controllerRequest,
  generationChanged,
} from "./controller.ts";
import { createControllerMetrics } from "./controller-metrics.ts";
import { createInformers } from "./informers.ts";
import { type Reconciler, type Request, TerminalError } from "./reconciler.ts";

type Reconcile = Reconciler["reconcile"];
type Build = (builder: ControllerBuilder) => ControllerBuilder;

const map = (name: string, more: object = {}) => ({ metadata: { namespace: "a", name, ...more } });

const hang: Reconcile = () => new Promise(() => {});
const untilAborted: Reconcile = (_, signal) =>
  new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));

async function setUp(reconcile: Reconcile = async () => ({}), options: Partial<ControllerOptions> = {}, build?: Build) {
  const clock = createFakeClock();
  const client = createFakeKubeClient();
  const random = () => 1;
  const log = silentLogger();
  const informers = createInformers({ client, clock, random, log });
  const seen: string[] = [];
  const reconciler: Reconciler = {
    reconcile(request, signal) {
      seen.push(`${request.namespace}/${request.name}`);
      return reconcile(request, signal);
    },
  };
  const builder = controllerOf({ name: "test", informers, log, clock, random, ...options });
  const controller = (build ?? ((begun) => begun.for(CONFIG_MAPS)))(builder).withReconciler(reconciler);
  const lifetime = new AbortController();
  return {
    clock,
    client,
    informers,
    controller,
    lifetime,
    take: () => seen.splice(0),
    start: async () => {
      await informers.start(lifetime.signal);
      await controller.start(lifetime.signal);
      await clock.flush();
    },
  };
}

test("every object is reconciled at the start and at every change", async () => {
  const { client, clock, take, start } = await setUp();
  client.put(CONFIG_MAPS, map("x"));
  await start();
  expect(take()).toEqual(["a/x"]);
  client.put(CONFIG_MAPS, map("y"));
  client.remove(CONFIG_MAPS, { namespace: "a", name: "x" });
  await clock.flush();
  expect(take()).toEqual(["a/y", "a/x"]);
});

test("no reconcile begins before every store has synced", async () => {
  const { client, clock, take, start } = await setUp(undefined, {}, (builder) =>
    builder.for(CONFIG_MAPS).watches(PODS, () => []),
  );
  client.put(CONFIG_MAPS, map("x"));
  client.before = ({ verb, resource }) => {
    if (verb === "list" && resource === "pods") throw new MeshError("KUBE_UNREACHABLE", "not yet");
  };
  await start();
  expect(take()).toEqual([]);
  client.before = () => {};
  await clock.advance(1_000);
  expect(take()).toEqual(["a/x"]);
});

test("a change of an owned object reconciles its controller, if the controller is of the kind", async () => {
  const { client, take, start } = await setUp(undefined, {}, (builder) =>
    builder.for(CONFIG_MAPS).watches(PODS, controllerRequest(CONFIG_MAPS)),
  );
  const owner = (kind: string, name: string, controller = true) => ({ apiVersion: "v1", kind, name, uid: "u", controller });
  client.put(PODS, map("one", { ownerReferences: [owner("ConfigMap", "x")] }));
  client.put(PODS, map("two", { ownerReferences: [owner("Secret", "y"), owner("ConfigMap", "z", false)] }));
  await start();
  expect(take()).toEqual(["a/x"]);
});

test("a mapped source queues the requests of the old object and of the new one", async () => {
  const toLabel = (object: { metadata: { labels?: Readonly<Record<string, string>> } }): Request[] => [
    { namespace: "", name: object.metadata.labels?.of ?? "" },
  ];
  const { client, clock, take, start } = await setUp(undefined, {}, (builder) => builder.for(NAMESPACES).watches(PODS, toLabel));
  client.put(PODS, map("x", { labels: { of: "one" } }));
  await start();
  take();
  client.put(PODS, map("x", { labels: { of: "two" } }));
  await clock.flush();
  expect(take()).toEqual(["/one", "/two"]);
});

test("predicates drop changes that do not pass", async () => {
  const { client, clock, take, start } = await setUp(undefined, {}, (builder) =>
    builder.for(CONFIG_MAPS, { predicates: [generationChanged] }),
  );
  client.put(CONFIG_MAPS, map("x", { generation: 1 }));
  await start();
  take();
  client.put(CONFIG_MAPS, map("x", { generation: 1, labels: { l: "1" } }));
  await clock.flush();
  expect(take()).toEqual([]);
  client.put(CONFIG_MAPS, map("x", { generation: 2 }));
  await clock.flush();
  expect(take()).toEqual(["a/x"]);
});

test("an error, thrown or rejected, is retried with backoff until the reconcile succeeds", async () => {
  let left = 3;
  const { client, clock, take, start } = await setUp((): ReturnType<Reconcile> => {
    if (--left === 2) throw new Error("thrown");
    return left > 0 ? Promise.reject(new Error("rejected")) : Promise.resolve({});
  });
  client.put(CONFIG_MAPS, map("x"));
  await start();
  await clock.advance(50);
  expect(take()).toHaveLength(2);
  await clock.advance(99);
  expect(take()).toHaveLength(0);
  await clock.advance(1);
  expect(take()).toHaveLength(1);
  await clock.advance(600_000);
  expect(take()).toHaveLength(0);
});

test("after a terminal error the object waits for a change", async () => {
  const { client, clock, take, start } = await setUp(async () => {
    throw new TerminalError("spec is wrong");
  });
  client.put(CONFIG_MAPS, map("x"));
  await start();
  await clock.advance(600_000);
  expect(take()).toHaveLength(1);
  client.put(CONFIG_MAPS, map("x", { labels: { l: "1" } }));
  await clock.flush();
  expect(take()).toHaveLength(1);
});

test("requeueAfterMs reconciles the object at that time", async () => {
  const { client, clock, take, start } = await setUp(async () => ({ requeueAfterMs: 1_000 }));
  client.put(CONFIG_MAPS, map("x"));
  await start();
  take();
  await clock.advance(3_500);
  expect(take()).toHaveLength(3);
});

test("with a debounce, a burst of changes is one reconcile, timed from the first change", async () => {
  const { client, clock, take, start, controller } = await setUp(undefined, { debounceMs: 100 });
  await start();
  for (let index = 0; index < 5; index++) {
    client.put(CONFIG_MAPS, map("x", { labels: { l: String(index) } }));
    await clock.advance(19);
  }
  controller.enqueue({ namespace: "a", name: "x" });
  expect(take()).toEqual([]);
  await clock.advance(5);
  expect(take()).toEqual(["a/x"]);
  await clock.advance(1_000);
  expect(take()).toEqual([]);
});

test("a stop waits for running reconciles, drops waiting ones, and fires the signal after the grace", async () => {
  const signals: AbortSignal[] = [];
  const untilAborted: Reconcile = (_, signal) => {
    signals.push(signal);
    return new Promise((resolve) => signal.addEventListener("abort", () => resolve({ requeueAfterMs: 1 })));
  };
  const { client, clock, take, start, controller } = await setUp(untilAborted);
  client.put(CONFIG_MAPS, map("x"));
  client.put(CONFIG_MAPS, map("y"));
  await start();
  let stopped = false;
  const stop = controller.stop().then(() => (stopped = true));
  await clock.advance(4_999);
  expect([signals[0]?.aborted, stopped]).toEqual([false, false]);
  await clock.advance(1);
  await stop;
  expect(take()).toEqual(["a/x"]);
});

test("a lost leadership ends running reconciles at once", async () => {
  const { client, start, controller, lifetime } = await setUp(untilAborted);
  client.put(CONFIG_MAPS, map("x"));
  await start();
  lifetime.abort(new MeshError("LEADERSHIP_LOST", "lost"));
  await controller.stop();
});

test("after a lost leadership no reconcile begins, not even of waiting objects", async () => {
  const { client, clock, take, start, lifetime } = await setUp(untilAborted);
  client.put(CONFIG_MAPS, map("x"));
  client.put(CONFIG_MAPS, map("y"));
  await start();
  lifetime.abort(new MeshError("LEADERSHIP_LOST", "lost"));
  await clock.advance(600_000);
  expect(take()).toEqual(["a/x"]);
});

test("a controller with stores that never sync can stop", async () => {
  const { client, start, controller } = await setUp();
  client.before = () => {
    throw new MeshError("KUBE_UNREACHABLE", "never");
  };
  await start();
  await controller.stop();
});

test("an object that always fails does not delay the others", async () => {
  const { client, clock, take, start } = await setUp(async ({ name }) => {
    if (name === "bad") throw new Error("never works");
    return {};
  });
  client.put(CONFIG_MAPS, map("bad"));
  client.put(CONFIG_MAPS, map("good"));
  await start();
  await clock.advance(60_000);
  take();
  client.put(CONFIG_MAPS, map("good", { labels: { l: "1" } }));
  await clock.flush();
  expect(take()).toEqual(["a/good"]);
  await clock.advance(600_000);
  expect(take().length).toBeLessThanOrEqual(6); // one each two minutes, the maximum of the backoff
});

test("a status write does not trigger its own controller", async () => {
  const { client, clock, take, start } = await setUp(
    async ({ namespace, name }) => {
      const status = { at: clock.monotonicMs() };
      await client.patch(CONFIG_MAPS, { namespace, name }, { type: "merge", body: { status } }, { subresource: "status" });
      return {};
    },
    {},
    (builder) => builder.for(CONFIG_MAPS, { predicates: [generationChanged] }),
  );
  client.put(CONFIG_MAPS, map("x", { generation: 1 }));
  await start();
  await clock.advance(1_000);
  expect(take()).toEqual(["a/x"]);
});

test("a reconcile that takes too long gets its signal and is retried", async () => {
  const { client, clock, take, start } = await setUp(untilAborted, { reconcileTimeoutMs: 1_000 });
  client.put(CONFIG_MAPS, map("x"));
  await start();
  await clock.advance(1_000);
  expect(take()).toHaveLength(1);
  await clock.advance(50);
  expect(take()).toHaveLength(1);
});

test("a reconcile that ignores its signal loses its worker, and its object waits for its end", async () => {
  const hangAtX: Reconcile = async (request, signal) => (request.name === "x" ? hang(request, signal) : {});
  const { client, clock, take, start } = await setUp(hangAtX, { reconcileTimeoutMs: 1_000 });
  client.put(CONFIG_MAPS, map("x"));
  client.put(CONFIG_MAPS, map("y"));
  await start();
  await clock.advance(1_999);
  expect(take()).toEqual(["a/x"]);
  await clock.advance(1);
  expect(take()).toEqual(["a/y"]);
  client.put(CONFIG_MAPS, map("x", { labels: { l: "1" } }));
  await clock.advance(600_000);
  expect(take()).toEqual([]);
});

test("the metrics count results, durations, timeouts and hanging reconciles", async () => {
  const registry = new Registry();
  const results: Record<string, Reconcile> = {
    done: async () => ({}),
    later: async () => ({ requeueAfterMs: 3_600_000 }),
    terminal: () => Promise.reject(new TerminalError("wrong")),
    hang,
  };
  const { client, clock, start } = await setUp((request, signal) => (results[request.name] ?? hang)(request, signal), {
    metrics: createControllerMetrics(registry),
    reconcileTimeoutMs: 1_000,
  });
  for (const name of Object.keys(results)) client.put(CONFIG_MAPS, map(name));
  await start();
  await clock.advance(5_000);
  const text = await registry.metrics();
  for (const line of [
    'controller_runtime_reconcile_total{controller="test",result="success"} 1',
    'controller_runtime_reconcile_total{controller="test",result="requeue_after"} 1',
    'controller_runtime_reconcile_total{controller="test",result="error"} 1',
    'controller_runtime_reconcile_errors_total{controller="test"} 1',
    'controller_runtime_terminal_reconcile_errors_total{controller="test"} 1',
    'controller_runtime_reconcile_timeouts_total{controller="test"} 1',
    'controller_runtime_reconcile_time_seconds_count{controller="test"} 3',
    'controller_runtime_active_workers{controller="test"} 1',
    'workqueue_unfinished_work_seconds{name="test"} 5',
    'workqueue_longest_running_processor_seconds{name="test"} 5',
  ]) {
    expect(text).toContain(line);
  }
});

test("an event of any other source queues its requests, from the start to the stop", async () => {
  const listeners = new Set<(name: string) => void>();
  const subscribe = (listener: (name: string) => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  const { clock, controller, take, start } = await setUp(undefined, {}, (builder) =>
    builder.on(subscribe, (name) => [{ namespace: "a", name }]),
  );
  expect(listeners.size).toBe(0);
  await start();
  for (const listener of listeners) listener("x");
  await clock.flush();
  expect(take()).toEqual(["a/x"]);
  await controller.stop();
  expect(listeners.size).toBe(0);
});
