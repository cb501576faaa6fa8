// The example operator's controller on the fake client and the fake clock. Such a test takes milliseconds and needs no API server.
// src/runtime/README.md describes it.
import { expect, test } from "vitest";
import { addGreetingController } from "../../../examples/greeting-operator/add.ts";
import { GREETINGS, type Greeting } from "../../../examples/greeting-operator/greeting.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { CONFIG_MAPS } from "../../../src/kube/client/resources.ts";
import { StatusError } from "../../../src/kube/status.ts";
import { createControllerMetrics } from "../../../src/runtime/controller-metrics.ts";
import { createEventRecorder } from "../../../src/runtime/events.ts";
import { createInformers } from "../../../src/runtime/informers.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeClient } from "../../support/fake-kube-client.ts";

const ADA = { namespace: "a", name: "ada" };
const CHILD = { namespace: "a", name: "ada-greeting" };
const ada = (generation: number, spec: Greeting["spec"]): Greeting => ({ metadata: { ...ADA, generation }, spec });

async function setUp() {
  const client = createFakeKubeClient();
  const common = { client, clock: createFakeClock(), random: () => 1, log: silentLogger() };
  const informers = createInformers(common);
  const events = createEventRecorder({ ...common, component: "test" });
  const metrics = createControllerMetrics(new Registry());
  const controller = addGreetingController({ ...common, informers, events, metrics, podName: "pod-0", namespace: "ops" });
  const lifetime = new AbortController();
  await informers.start(lifetime.signal);
  await controller.start(lifetime.signal);
  return {
    client,
    clock: common.clock,
    greeting: () => client.read(GREETINGS, ADA),
    child: () => client.read(CONFIG_MAPS, CHILD),
  };
}

test("a Greeting becomes a ConfigMap, a line and a status", async () => {
  const { client, clock, greeting, child } = await setUp();
  client.put(GREETINGS, ada(1, { to: "Ada" }));
  await clock.advance(1_000);
  expect(child()?.data).toEqual({ text: "Hello, Ada!" });
  expect(client.read(CONFIG_MAPS, { namespace: "ops", name: "greetings" })?.data).toEqual({ "a.ada": "Hello, Ada!" });
  expect(greeting()?.status).toMatchObject({ text: "Hello, Ada!", conditions: [{ type: "Ready", status: "True" }] });
});

test("a failed write is repeated until it succeeds", async () => {
  const { client, clock, child } = await setUp();
  let failures = 3;
  client.before = ({ verb, name }) => {
    if (verb === "patch" && name === CHILD.name && failures-- > 0) throw new StatusError("InternalError", "not now");
  };
  client.put(GREETINGS, ada(1, { to: "Ada" }));
  await clock.advance(10_000);
  expect(child()?.data).toEqual({ text: "Hello, Ada!" });
});

test("a deleted Greeting disappears after its line has been removed", async () => {
  const { client, clock, greeting } = await setUp();
  client.put(GREETINGS, ada(1, { to: "Ada" }));
  await clock.advance(1_000);
  await client.delete(GREETINGS, ADA);
  await clock.advance(1_000);
  expect(greeting()).toBeUndefined();
  expect(client.read(CONFIG_MAPS, { namespace: "ops", name: "greetings" })?.data).toEqual({});
});
