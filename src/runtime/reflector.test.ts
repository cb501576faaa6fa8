import { pino } from "pino";
import { expect, test } from "vitest";
import { createFakeClock } from "../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../test/support/fake-kube-client.ts";
import { MeshError } from "../base/errors.ts";
import { LOG_FORMAT, silentLogger } from "../base/log.ts";
import { PODS } from "../kube/client/resources.ts";
import { StatusError } from "../kube/status.ts";
import { createReflector, dropUnreadMetadata } from "./reflector.ts";

const pod = (name: string, phase = "Running") => ({ metadata: { namespace: "a", name }, status: { phase } });

async function setUp(log = silentLogger()) {
  const clock = createFakeClock();
  const client = createFakeKubeClient();
  const stopper = new AbortController();
  const reflector = createReflector({ client, resource: PODS, clock, random: () => 0, log });
  const changes: string[] = [];
  reflector.store.onChange(({ type, object }) => changes.push(`${type} ${object.metadata.name}`));
  client.put(PODS, pod("x"));
  return {
    clock,
    client,
    stopper,
    reflector,
    take: () => changes.splice(0),
    verbs: () => client.calls.splice(0).map(({ verb }) => verb),
    start: async () => {
      await reflector.start(stopper.signal);
      await clock.flush();
    },
  };
}

test("a reflector lists, then applies the events", async () => {
  const { reflector, client, clock, take, start } = await setUp();
  await start();
  expect(take()).toEqual(["added x"]);
  client.put(PODS, pod("y"));
  client.put(PODS, pod("x", "Failed"));
  client.remove(PODS, { namespace: "a", name: "y" });
  await clock.flush();
  expect(take()).toEqual(["added y", "updated x", "deleted y"]);
  expect(reflector.store.list().map(({ status }) => status?.phase)).toEqual(["Failed"]);
  await reflector.stop();
});

test("a watch that ends in order continues without a list and without a gap", async () => {
  const { reflector, client, clock, take, verbs, start } = await setUp();
  await start();
  client.put(PODS, pod("y"));
  await clock.flush();
  client.endWatches();
  client.put(PODS, pod("z"));
  await clock.flush();
  expect(take()).toEqual(["added x", "added y", "added z"]);
  expect(verbs()).toEqual(["list", "watch", "watch"]);
  await reflector.stop();
});

test("a broken watch continues after a wait, without a lost change", async () => {
  const { reflector, client, clock, take, start } = await setUp();
  await start();
  client.endWatches(new MeshError("KUBE_UNREACHABLE", "reset"));
  await clock.flush();
  client.put(PODS, pod("y"));
  await clock.advance(300);
  expect(take()).toEqual(["added x"]);
  await clock.advance(500);
  expect(take()).toEqual(["added y"]);
  await reflector.stop();
});

test("a watch that the server refuses for a while continues after that time, and is logged without a stack", async () => {
  const lines: string[] = [];
  const log = pino(LOG_FORMAT, { write: (line: string) => void lines.push(line) });
  const { reflector, client, clock, take, verbs, start } = await setUp(log);
  await start();
  client.endWatches(new StatusError("TooManyRequests", "storage is (re)initializing", { retryAfterSeconds: 3 }));
  client.put(PODS, pod("y"));
  await clock.advance(2_900);
  expect(verbs()).toEqual(["list", "watch"]);
  await clock.advance(200);
  expect(take()).toEqual(["added x", "added y"]);
  const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(parsed).toMatchObject([{ level: "info", reason: "storage is (re)initializing", waitMs: 3_000 }]);
  expect(parsed[0]).not.toHaveProperty("err");
  await reflector.stop();
});

test("after an expired watch the reflector lists again, and publishes deletions for objects that no longer exist", async () => {
  const { reflector, client, clock, take, verbs, start } = await setUp();
  await start();
  client.endWatches(new StatusError("Expired", "too old"));
  client.remove(PODS, { namespace: "a", name: "x" });
  client.put(PODS, pod("y"));
  await clock.flush();
  expect(take()).toEqual(["added x", "deleted x", "added y"]);
  expect(verbs()).toEqual(["list", "watch", "list", "watch"]);
  await reflector.stop();
});

test("after an unreadable stream the reflector lists again", async () => {
  const { reflector, client, clock, verbs, start } = await setUp();
  await start();
  client.endWatches(new MeshError("WATCH_MALFORMED", "garbage"));
  await clock.flush();
  expect(verbs()).toEqual(["list", "watch", "list", "watch"]);
  await reflector.stop();
});

test("a failed list is retried with growing waits, and a stop ends the wait", async () => {
  const { reflector, client, clock, verbs, start } = await setUp();
  client.before = ({ verb }) => {
    if (verb === "list") throw new StatusError("NotFound", "no such resource");
  };
  await start();
  await clock.advance(400 + 800 + 1600);
  expect(verbs()).toHaveLength(4);
  await clock.advance(3_000);
  expect(verbs()).toHaveLength(0);
  expect(reflector.store.hasSynced).toBe(false);
  await reflector.stop();
  expect(clock.pending).toBe(0);
});

test("a list without resourceVersion is an error", async () => {
  const { reflector, clock, start, client } = await setUp();
  client.list = async () => ({ metadata: {}, items: [] });
  await start();
  await clock.flush();
  expect(reflector.store.hasSynced).toBe(false);
  await reflector.stop();
});

test("managed fields and kubectl's copy of the object are dropped", () => {
  const metadata = { name: "x", managedFields: [{ manager: "kubectl" }], labels: { l: "1" } };
  expect(dropUnreadMetadata({ metadata })).toEqual({ metadata: { name: "x", labels: { l: "1" } } });
  const annotations = { "kubectl.kubernetes.io/last-applied-configuration": "{}", other: "kept" };
  expect(dropUnreadMetadata({ metadata: { name: "x", annotations } })).toEqual({
    metadata: { name: "x", annotations: { other: "kept" } },
  });
});
