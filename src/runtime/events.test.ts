import { expect, test } from "vitest";
import { createFakeClock } from "../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../test/support/fake-kube-client.ts";
import { MeshError } from "../base/errors.ts";
import { silentLogger } from "../base/log.ts";
import { EVENTS } from "../kube/client/resources.ts";
import { createEventRecorder } from "./events.ts";

const object = (name = "x") => ({ apiVersion: "v1", kind: "Pod", metadata: { namespace: "a", name, uid: `uid-${name}` } });

function setUp() {
  const clock = createFakeClock();
  const client = createFakeKubeClient();
  let random = 0;
  const recorder = createEventRecorder({
    client,
    component: "test",
    clock,
    random: () => {
      random += 0.001;
      return random % 1;
    },
    log: silentLogger(),
  });
  return {
    clock,
    client,
    recorder,
    events: async (namespace = "a") => (await client.list(EVENTS, { namespace })).items,
    writes: () => client.calls.filter(({ verb }) => verb !== "list").map(({ verb }) => verb),
  };
}

test("an Event names the object, the reason and the message", async () => {
  const { recorder, clock, events } = setUp();
  recorder.event(object(), "Warning", "Held", "waits for pod b");
  await clock.advance(0);
  expect(await events()).toMatchObject([
    {
      involvedObject: { apiVersion: "v1", kind: "Pod", namespace: "a", name: "x", uid: "uid-x" },
      type: "Warning",
      reason: "Held",
      message: "waits for pod b",
      count: 1,
      firstTimestamp: "2026-01-01T00:00:00Z",
      source: { component: "test" },
    },
  ]);
});

test("an equal Event raises the count, at most every ten seconds", async () => {
  const { recorder, clock, events, writes } = setUp();
  for (let second = 0; second < 20; second++) {
    recorder.event(object(), "Normal", "Same", "same");
    await clock.advance(1_000);
  }
  await clock.advance(10_000);
  expect((await events()).map(({ count }) => count)).toEqual([20]);
  expect(writes()).toEqual(["create", "patch", "patch"]);
});

test("an Event that the server has deleted is created again", async () => {
  const { recorder, clock, client, events } = setUp();
  recorder.event(object(), "Normal", "Same", "same");
  await clock.advance(0);
  const [first] = await events();
  client.remove(EVENTS, { namespace: "a", name: first?.metadata.name ?? "" });
  recorder.event(object(), "Normal", "Same", "same");
  await clock.advance(10_000);
  expect(await events()).toHaveLength(1);
});

test("a server that fails or hangs causes no error and no growth of memory", async () => {
  const { recorder, clock, client, writes } = setUp();
  let hang = () => {};
  client.before = () => new Promise((_, reject) => (hang = () => reject(new MeshError("KUBE_UNREACHABLE", "away"))));
  for (let index = 0; index < 1_000; index++) recorder.event(object(`x${index}`), "Normal", "Many", "many");
  await clock.advance(0);
  hang();
  await clock.flush();
  client.before = () => {};
  hang();
  await clock.flush();
  expect(writes().length).toBeLessThanOrEqual(257);
});

test("Events of cluster-scoped objects are in the namespace default, and a stop writes pending Events", async () => {
  const { recorder, events, client, clock } = setUp();
  recorder.event({ kind: "Namespace", metadata: { name: "n" } }, "Normal", "Made", "made");
  await recorder.stop();
  expect(await events("default")).toHaveLength(1);
  recorder.event(object(), "Normal", "Late", "late");
  await clock.advance(60_000);
  expect(client.calls.filter(({ verb }) => verb === "create")).toHaveLength(1);
});
