// `ctrlmesh dashboard` in this process, with a cluster that is data. What the page shows is in test/integration/dashboard.
import { afterEach, expect, test } from "vitest";
import { startCli } from "../../../test/support/cli.ts";
import { readDashboard } from "../../../test/support/dashboard-stream.ts";
import {
  type DashboardWorld,
  putBusyCluster,
  shopApp,
  shopPods,
  shopRequests,
  startDashboard,
} from "../../../test/support/dashboard-world.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { CIRCUIT_BREAKERS, OWNERSHIP_SLICES, SHARDING_CONFIGS, TRAFFIC_POLICIES, VIRTUAL_APPS } from "../../api/resources.ts";
import { StatusError } from "../../kube/status.ts";
import type { Part, Traffic } from "./model/parts.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function opened(refusals?: ReadonlyMap<string, Error>): Promise<DashboardWorld> {
  const world = await startDashboard({ pods: shopPods(), ...(refusals && { refusals }) });
  closing.push(world.close);
  return world;
}

async function follow(url: string) {
  const seen = await readDashboard(url);
  closing.push(seen.close);
  return seen;
}

const ofKind = (parts: ReadonlyMap<string, Part>, part: Part["part"]) => [...parts.values()].filter((each) => each.part === part);

test("the stream has every app, slice, policy and kind, and then what changes", async () => {
  const world = await opened();
  putBusyCluster(world);
  const seen = await follow(world.url);
  await eventually(() => ofKind(seen.parts, "app").length === 3 && ofKind(seen.parts, "policy").length === 3);
  expect(ofKind(seen.parts, "slice")).toHaveLength(2);
  expect(ofKind(seen.parts, "kind").map((kind) => kind.part === "kind" && kind.state)).toEqual(Array(6).fill("shown"));
  world.put(VIRTUAL_APPS, shopApp({ ...shopApp().status.handover, done: 2 }));
  world.client.remove(CIRCUIT_BREAKERS, { namespace: "ops", name: "shop-deletes" });
  await eventually(() => ofKind(seen.parts, "policy").length === 2 && seen.text.includes('"done":2,"total":2'));
});

test("many changes are few messages", async () => {
  const world = await opened();
  putBusyCluster(world);
  const seen = await follow(world.url);
  await eventually(() => ofKind(seen.parts, "app").length === 3);
  const before = seen.messages;
  for (let done = 0; done <= 500; done++) world.put(VIRTUAL_APPS, shopApp({ ...shopApp().status.handover, done }));
  await eventually(() => seen.text.includes('"done":500'));
  expect(seen.messages - before).toBeLessThan(4);
});

test("a kind that may not be read, or that is not there, is said with its right, and hides no other", async () => {
  const refusals = new Map([
    ["list trafficpolicies", new StatusError("Forbidden", "trafficpolicies is forbidden")],
    ["list ownershipslices", new StatusError("NotFound", "the server could not find the requested resource")],
  ]);
  const world = await opened(refusals);
  putBusyCluster(world);
  const seen = await follow(world.url);
  const stateOf = (resource: string) => {
    const part = seen.parts.get(`kind ${resource}`);
    return part?.part === "kind" && part.state;
  };
  await eventually(() => ofKind(seen.parts, "policy").length === 2);
  expect(stateOf("trafficpolicies.ctrlmesh.kruise.io")).toBe("forbidden");
  expect(stateOf("ownershipslices.ctrlmesh.kruise.io")).toBe("missing");
  expect(stateOf("circuitbreakers.ctrlmesh.kusionstack.io")).toBe("shown");
  // The CRD is installed, and the right is given.
  refusals.clear();
  await eventually(() => ofKind(seen.parts, "policy").length === 3 && ofKind(seen.parts, "slice").length === 2);
  expect(stateOf("trafficpolicies.ctrlmesh.kruise.io")).toBe("shown");
});

test("a kind that may be listed and not watched is said too: what is shown of it does not change", async () => {
  const world = await opened(new Map([["watch trafficpolicies", new StatusError("Forbidden", "cannot watch")]]));
  const seen = await follow(world.url);
  await eventually(() => seen.text.includes('"state":"forbidden","problem":"cannot watch"'));
});

test("a hostile text is one plain line in the stream, without characters that turn the text around", async () => {
  const world = await opened();
  const message = "\u202e</script><script>alert(1)</script>\u2066\nevent: parts\ndata: {}\n\n\u0007";
  const condition = { type: "Accepted", status: "False", reason: "Invalid", message, lastTransitionTime: "2026-01-01T00:00:00Z" };
  world.put(VIRTUAL_APPS, { metadata: { namespace: "ops", name: "shop" }, status: { conditions: [condition] } });
  world.put(OWNERSHIP_SLICES, {
    metadata: { namespace: "ops", name: "x" },
    app: message,
    places: "many",
    ownership: [{ state: message }, 7],
  });
  world.put(TRAFFIC_POLICIES, { metadata: { namespace: "ops", name: "x" }, status: "odd" });
  world.put(SHARDING_CONFIGS, { metadata: { namespace: "ops", name: "x" }, status: { family: message, subsets: 7 } });
  const seen = await follow(world.url);
  await eventually(() => ofKind(seen.parts, "app").length === 2 && ofKind(seen.parts, "policy").length === 1);
  expect(JSON.stringify([...seen.parts.values()])).not.toMatch(/\u202e|\u2066|\\n|\\u0007/);
  const app = ofKind(seen.parts, "app").find((part) => part.part === "app" && part.kind === "VirtualApp");
  expect(app).toMatchObject({ problems: [{ message: expect.stringContaining("</script><script>alert(1)</script> ") }] });
});

test("a value in the place of a text, which has no text of its own, ends neither the program nor the other parts", async () => {
  const world = await opened();
  const odd = { toString: 1, valueOf: 1 };
  world.put(VIRTUAL_APPS, { metadata: { namespace: "ops", name: "odd" }, spec: { route: { frozen: { "team-b": odd } } } });
  world.put(OWNERSHIP_SLICES, { metadata: { namespace: "ops", name: "odd" }, app: odd, ownership: [] });
  world.put(TRAFFIC_POLICIES, { metadata: { namespace: "ops", name: "sound" } });
  const seen = await follow(world.url);
  await eventually(() => ofKind(seen.parts, "policy").length === 1 && ofKind(seen.parts, "slice").length === 1);
  expect(ofKind(seen.parts, "app")).toMatchObject([{ frozen: [{ namespace: "team-b", reason: JSON.stringify(odd) }] }]);
});

test("a slice with more places than the manager writes is shown up to that number, and the rest is counted", async () => {
  const world = await opened();
  const namespaces = Array.from({ length: 600 }, (_, at) => `team-${at}`);
  const ownership = Array(50).fill({ state: "Owned", owners: [{ subset: "v2" }], since: "2026-01-01T00:00:00Z", namespaces });
  world.put(OWNERSHIP_SLICES, { metadata: { namespace: "ops", name: "endless" }, app: "shop", places: 1_000, ownership });
  const seen = await follow(world.url);
  await eventually(() => ofKind(seen.parts, "slice").length === 1);
  expect(ofKind(seen.parts, "slice")).toMatchObject([{ entries: [{ state: "Owned" }], unread: 49 * 600 }]);
});

test("a kind that the API server answers with 500 has failed, while the API server itself is there", async () => {
  const error = new StatusError("InternalError", "conversion webhook failed");
  const world = await opened(new Map([["list circuitbreakers", error]]));
  const seen = await follow(world.url);
  await eventually(() => seen.text.includes('"state":"failed","problem":"conversion webhook failed"'));
  expect(seen.ticks.every(({ awaySinceMs }) => awaySinceMs === undefined)).toBe(true);
});

test("while the API server does not answer, the stream says since when, and keeps what was known", async () => {
  const world = await opened();
  putBusyCluster(world);
  const seen = await follow(world.url);
  await eventually(() => ofKind(seen.parts, "app").length === 3);
  world.away();
  await eventually(() => seen.ticks.at(-1)?.awaySinceMs !== undefined, 5_000);
  expect(seen.ticks.at(-1)?.problem).toMatch(/^talking to the API server/);
  expect(ofKind(seen.parts, "app")).toHaveLength(3);
  world.put(VIRTUAL_APPS, shopApp({ ...shopApp().status.handover, done: 77 }));
  world.back();
  await eventually(() => seen.text.includes('"done":77') && seen.ticks.at(-1)?.awaySinceMs === undefined, 10_000);
});

test("the requests of an app are asked once for all who look, and refusals are counted", async () => {
  const world = await opened();
  let asked = 0;
  for (const pod of ["shop-0", "shop-1"])
    world.cli.sidecars.set(pod, {
      "/debug/requests": async () => {
        asked++;
        return shopRequests();
      },
    });
  const replies = await Promise.all([1, 2, 3].map(() => fetch(`${world.url}traffic?app=ops/shop`)));
  const [traffic] = (await Promise.all(replies.map((reply) => reply.json()))) as Traffic[];
  expect(asked).toBe(2);
  expect(traffic).toMatchObject({
    pods: 2,
    rows: [{ request: "get configmaps", count: 82 }, {}, { request: "delete pods", refused: 6 }, {}],
  });
  expect(traffic?.refused[0]).toMatchObject({ count: 3, why: "403 refused NotOwner" });
  expect((await fetch(`${world.url}traffic?app=../x`)).status).toBe(400);
  expect(await (await fetch(`${world.url}traffic?app=ops/nobody`)).json()).toEqual({
    problem: expect.stringContaining("no pod of these apps"),
  });
});

test("the command prints the address alone on stdout, serves until it is stopped, and ends with 0", async () => {
  const cli = startCli([]);
  const running = cli.run("dashboard", "-o", "json");
  const isOpen = await Promise.race([running.then(() => false), cli.watchedOnce.then(() => true)]);
  expect(isOpen).toBe(true);
  cli.interrupt();
  const { code, stdout, stderr } = await running;
  expect(code).toBe(0);
  const { kind, url } = JSON.parse(stdout);
  expect([kind, url]).toEqual(["Dashboard", expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/$/)]);
  expect(stderr).toContain("shows namespace ops; -A shows all namespaces");
  await expect(fetch(url)).rejects.toThrow();
});

test.each(["-1", "65536", "http", ""])("a port %j is wrong usage", async (port) => {
  const { code, stderr } = await startCli([]).run("dashboard", `--port=${port}`);
  expect([code, stderr]).toEqual([64, expect.stringContaining("--port:")]);
});
