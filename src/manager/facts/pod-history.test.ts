import { beforeEach, describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { snapshot, table } from "../../../test/support/route-table.ts";
import { appsIn } from "../../../test/support/source-apps.ts";
import type { VirtualApp } from "../../api/virtual-app.ts";
import { silentLogger } from "../../base/log.ts";
import { PODS, type Pod } from "../../kube/client/resources.ts";
import type { ProxyFacts } from "../../mesh/handover/proxy-facts.ts";
import type { Snapshot } from "../../mesh/ownership/snapshot.ts";
import { createInformers } from "../../runtime/informers.ts";
import { createStore } from "../../runtime/store.ts";
import { createPodHistory } from "./pod-history.ts";
import { createPodWatch } from "./pod-watch.ts";

const pod = (name: string, status: Pod["status"] = { phase: "Running" }): Pod => ({
  metadata: { namespace: "shop", name, uid: `uid-${name}` },
  ...(status === undefined ? {} : { status }),
});
const container = (state: object) => ({ name: "operator", ready: false, restartCount: 0, state });
const GRACE_MS = 12_000;
const facts = { connected: true, inDoubt: [] as readonly Snapshot[] } as ProxyFacts;

function setUp() {
  const clock = createFakeClock();
  const history = createPodHistory({ clock, tokenCacheMs: 10_000 });
  const over: string[] = [];
  history.onOver((namespace) => over.push(namespace));
  const names = () => history.gone("shop").map((each) => each.pod?.metadata.name ?? "unknown");
  return { clock, history, over, names };
}

let world: ReturnType<typeof setUp>;
beforeEach(() => {
  world = setUp();
});

describe("a removed pod", () => {
  it("counts for the grace time with the last facts about its proxy, and so does a new pod of its name", async () => {
    const { history, clock, names, over } = world;
    history.removed(pod("a"), facts);
    await clock.advance(GRACE_MS / 2);
    history.removed({ ...pod("a"), metadata: { namespace: "shop", name: "a", uid: "uid-new" } }, undefined);
    expect(history.gone("shop")[0]?.facts).toBe(facts);
    await clock.advance(GRACE_MS / 2 - 1);
    expect(names()).toEqual(["a", "a"]);
    await clock.advance(1);
    expect(history.gone("shop").map((each) => each.pod?.metadata.uid)).toEqual(["uid-new"]);
    expect(over).toEqual(["shop"]);
    await clock.advance(GRACE_MS);
    expect([names(), clock.pending]).toEqual([[], 0]);
  });

  it("does not count if a kubelet has reported that its containers have ended", () => {
    const { history, names } = world;
    history.removed(pod("a", { phase: "Succeeded", containerStatuses: [container({ terminated: {} })] }), undefined);
    const ending = pod("b", { phase: "Running", containerStatuses: [container({ terminated: {} })] });
    history.removed({ ...ending, metadata: { ...ending.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } }, undefined);
    expect(names()).toEqual([]);
  });

  it("counts if only the phase says so (a lost node), if a container may start again, and while its proxy is connected", () => {
    const { history, names } = world;
    history.removed(pod("lost", { phase: "Failed", containerStatuses: [container({ running: {} })] }), undefined);
    history.removed(pod("crashed", { phase: "Running", containerStatuses: [container({ terminated: {} })] }), undefined);
    history.removed(pod("talks", { phase: "Failed" }), facts);
    expect(names()).toEqual(["lost", "crashed", "talks"]);
  });

  it("does not count if it never had a node, unless its proxy has registered", () => {
    const { history, names } = world;
    history.removed(pod("none", {}), undefined);
    history.removed(pod("heard", {}), { ...facts, connected: false });
    history.removed({ ...pod("bound", {}), spec: { nodeName: "n" } }, undefined);
    expect(names()).toEqual(["heard", "bound"]);
  });
});

describe("the pods that were removed before this replica led", () => {
  const app = { metadata: { namespace: "shop", name: "app" } } as VirtualApp;

  async function followed() {
    const { clock, history } = world;
    const client = createFakeKubeClient();
    const log = silentLogger();
    const informers = createInformers({ client, clock, random: () => 0, log });
    const apps = createStore<VirtualApp>((error) => expect.fail(String(error)));
    await informers.start(new AbortController().signal);
    const pods = new Map(["a", "b", "c"].map((name) => [name, client.put<Pod>(PODS, pod(name))]));
    apps.upsert(app);
    const watch = createPodWatch({ informers, apps: appsIn(apps), log });
    const end = history.follow(watch);
    await watch.start(new AbortController().signal);
    await clock.flush();
    /** The list of these pods. */
    const these = (...names: string[]) => names.flatMap((name) => pods.get(name) ?? []);
    return { client, watch, end, these };
  }

  it("are unknown for the grace time after the first list", async () => {
    const { history, clock, names } = world;
    history.listed("shop", [pod("a")]);
    expect(names()).toEqual(["unknown"]);
    await clock.advance(GRACE_MS);
    expect(names()).toEqual([]);
    history.left("shop");
    history.listed("shop", [pod("a")]);
    expect(names()).toEqual(["unknown"]);
  });

  it("are known to a replica that followed the pods until its list as leader", async () => {
    const { client, watch, end, these } = await followed();
    const { history, clock, names } = world;
    await clock.advance(GRACE_MS);
    client.remove(PODS, { namespace: "shop", name: "a" });
    await clock.flush();
    expect(names()).toEqual(["a"]);
    end();
    await watch.stop();
    history.listed("shop", these("c"));
    expect(names()).toEqual(["a", "b"]);
    await clock.advance(GRACE_MS);
    expect(names()).toEqual([]);
  });

  it("are unknown for the rest of the grace time if the replica has followed the pods for less", async () => {
    const { watch, end, these } = await followed();
    const { history, clock, names } = world;
    await clock.advance(GRACE_MS - 1_000);
    end();
    await watch.stop();
    history.listed("shop", these("a", "b", "c"));
    expect(names()).toEqual(["unknown"]);
    await clock.advance(1_000);
    expect(names()).toEqual([]);
  });
});

describe("a pod that is older than this manager's leadership", () => {
  const named = (namespace: string, name: string, uid = `uid-${name}`): Pod => ({ metadata: { namespace, name, uid } });

  it("has a status that may be late for 30 s, unlike a newer pod", async () => {
    const clock = createFakeClock();
    const history = createPodHistory({ clock, tokenCacheMs: 98_000 });
    const over: string[] = [];
    history.onOver((namespace) => over.push(namespace));
    expect(history.isStatusLate(named("shop", "a"))).toBe(false);
    history.listed("shop", [named("shop", "a")]);
    await clock.advance(20_000);
    history.listed("store", [named("store", "b")]);
    expect([
      history.isStatusLate(named("shop", "a")),
      history.isStatusLate(named("shop", "a", "anew")),
      history.isStatusLate(named("shop", "b")),
    ]).toEqual([true, false, false]);
    await clock.advance(10_000);
    expect([history.isStatusLate(named("shop", "a")), history.isStatusLate(named("store", "b")), over]).toEqual([
      false,
      true,
      ["shop"],
    ]);
    await clock.advance(20_000);
    expect([history.isStatusLate(named("store", "b")), over]).toEqual([false, ["shop", "store"]]);
  });

  it("counts as older for ever", async () => {
    const clock = createFakeClock();
    const history = createPodHistory({ clock, tokenCacheMs: 98_000 });
    history.listed("shop", [named("shop", "a")]);
    await clock.advance(60_000);
    expect([
      history.isStatusLate(named("shop", "a")),
      history.mayHaveEarlierRoutes(named("shop", "a")),
      history.mayHaveEarlierRoutes(named("shop", "b")),
    ]).toEqual([false, true, false]);
    history.listed("shop", [named("shop", "b")]); // all apps of the namespace were gone, and one is back
    expect([history.mayHaveEarlierRoutes(named("shop", "a")), history.mayHaveEarlierRoutes(named("shop", "b"))]).toEqual([
      false,
      true,
    ]);
  });

  it("is forgotten after the last app of its namespace, until the namespace is listed again", async () => {
    const clock = createFakeClock();
    const history = createPodHistory({ clock, tokenCacheMs: 98_000 });
    history.listed("shop", [named("shop", "a")]);
    history.left("shop");
    expect([history.isStatusLate(named("shop", "a")), history.mayHaveEarlierRoutes(named("shop", "a"))]).toEqual([false, false]);
    history.listed("shop", [named("shop", "a")]);
    await clock.advance(29_999);
    expect([history.isStatusLate(named("shop", "a")), history.mayHaveEarlierRoutes(named("shop", "a"))]).toEqual([true, true]);
  });
});

describe("in an app that divides other clusters", () => {
  const DRAIN_MS = 60_000;
  const ABROAD_MS = GRACE_MS + 8_000 + DRAIN_MS;
  const setUpAbroad = (drainMs = DRAIN_MS) => {
    const clock = createFakeClock();
    const history = createPodHistory({ clock, tokenCacheMs: 10_000, longestDrainMs: () => drainMs });
    const names = () => history.goneAbroad("shop").map((each) => each.pod?.metadata.name ?? "unknown");
    return { clock, history, names };
  };

  it("a pod that was removed by force counts until its proxy lets nothing pass and the last request is over", async () => {
    const { clock, history, names } = setUpAbroad();
    history.removed(pod("a"), facts);
    await clock.advance(GRACE_MS);
    expect([history.gone("shop"), names()]).toEqual([[], ["a"]]);
    await clock.advance(ABROAD_MS - GRACE_MS - 1);
    expect(names()).toEqual(["a"]);
    await clock.advance(1);
    expect(names()).toEqual([]);
  });

  it("a pod whose containers have ended counts until its last request is over, and its removal then changes nothing", async () => {
    const { clock, history, names } = setUpAbroad();
    const ended = pod("a", { phase: "Succeeded", containerStatuses: [container({ terminated: {} })] });
    history.ended(ended, facts);
    history.removed(ended, undefined);
    expect([history.gone("shop"), names()]).toEqual([[], ["a"]]);
    await clock.advance(DRAIN_MS);
    expect(names()).toEqual([]);
  });

  it("a new leader does not know for as long which pods were removed", async () => {
    const { clock, history, names } = setUpAbroad();
    history.listed("shop", [pod("a")]);
    await clock.advance(ABROAD_MS - 1);
    expect(names()).toEqual(["unknown"]);
    await clock.advance(1);
    expect(names()).toEqual([]);
  });

  it("a pod that may enforce routes with a cluster counts, though the MeshCluster is deleted", async () => {
    const { clock, history, names } = setUpAbroad(0);
    const clusters = [{ name: "eu", servers: ["eu:443"], drainMs: DRAIN_MS, owner: "" }];
    history.removed(pod("a"), { ...facts, acknowledged: snapshot(table([], {}), { clusters }) });
    await clock.advance(ABROAD_MS - 1);
    expect(names()).toEqual(["a"]);
    await clock.advance(1);
    expect(names()).toEqual([]);
  });

  it("in a namespace without clusters no pod counts", () => {
    const { history, names } = setUpAbroad(0);
    history.removed(pod("a"), facts);
    history.listed("shop", []);
    expect(names()).toEqual([]);
  });
});
