import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { fleetCluster } from "../../../test/support/mesh-cluster.ts";
import { createRemoteCluster } from "../../../test/support/remote-cluster.ts";
import { LOG_FORMAT } from "../../base/log.ts";
import { SECRETS } from "../../kube/client/resources.ts";
import { StatusError } from "../../kube/status.ts";
import { acceptClusters } from "../apps/accept-clusters.ts";
import type { App } from "../apps/app.ts";
import { createClusterNamespacesReconciler } from "./reconciler.ts";
import { createWatchedClusters } from "./watched-clusters.ts";

const TOKEN = "a-secret-token";
const CLUSTER = { namespace: "fleet", name: "eu" };
const kubeconfig = (token = TOKEN, server = "https://eu.example", user: object = {}) =>
  stringify({
    clusters: [{ name: "c", cluster: { server } }],
    users: [{ name: "u", user: { token, ...user } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  });

function setup() {
  const clock = createFakeClock();
  const home = createFakeKubeClient();
  const remote = createRemoteCluster();
  const lines: string[] = [];
  const log = pino({ ...LOG_FORMAT, level: "debug" }, { write: (line: string) => void lines.push(line) });
  const watched = createWatchedClusters({ userAgent: "t", connect: remote.connect, clock, random: () => 0.5, log });
  let divides = true;
  const names = ["eu"];
  const meshCluster = (name: string) =>
    fleetCluster(name, {
      servers: [`https://${name}.example`, `https://${name}.internal`],
      interception: "Terminate",
      terminate: { kubeconfigSecret: `${name}-namespaces` },
    });
  const { reconcile } = createClusterNamespacesReconciler({
    client: home,
    apps: { list: () => (divides ? [{ spec: { clusterOwners: () => new Map() } } as unknown as App] : []) },
    clusters: { of: () => acceptClusters(names.map(meshCluster)) },
    watched,
    random: () => 0.5,
  });
  const changes: string[] = [];
  watched.onNamespaces(({ name }) => changes.push(name));
  const states: string[] = [];
  watched.onState((cluster) => states.push(`${cluster.name} ${watched.stateOf(cluster).reason}`));
  return {
    clock,
    home,
    remote,
    watched,
    changes,
    states,
    lines,
    names,
    stopDividing() {
      divides = false;
    },
    putSecret: (data: Record<string, string>, name = "eu-namespaces") =>
      home.put(SECRETS, {
        metadata: { namespace: "fleet", name },
        data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")])),
      } as never),
    async run() {
      const result = await reconcile({ namespace: "", name: "fleet" }, new AbortController().signal);
      await clock.flush();
      await clock.flush();
      return result;
    },
    listed: () =>
      watched
        .storeOf(CLUSTER)
        ?.list()
        .map(({ metadata }) => metadata.name),
    state: () => watched.stateOf(CLUSTER),
  };
}

describe("the namespaces of a cluster", () => {
  it.each(["kubeconfig", "value", "config"])("are watched with the key %s of its Secret, and changes are told", async (key) => {
    const { remote, putSecret, run, listed, state, changes, clock } = setup();
    remote.put("a");
    putSecret({ other: "x", [key]: kubeconfig() });
    expect(await run()).toEqual({ requeueAfterMs: 30_000 });
    expect([listed(), state().reason, changes]).toEqual([["a"], "Listed", ["eu"]]);
    expect(remote.connections).toMatchObject([{ server: "https://eu.example", maxAnswerBytes: 1_048_576 }]);
    remote.put("b");
    remote.remove("a");
    await clock.advance(100);
    expect([listed(), changes]).toEqual([["b"], ["eu", "eu"]]);
  });

  it("are watched on with a new token of the Secret, without another list", async () => {
    const { remote, putSecret, run, listed, changes, clock, watched } = setup();
    remote.put("a");
    putSecret({ kubeconfig: kubeconfig() });
    await run();
    await run();
    const store = watched.storeOf(CLUSTER);
    putSecret({ kubeconfig: kubeconfig("newer") });
    await run();
    expect(remote.connections.map(({ token }) => token())).toEqual(["newer"]);
    await clock.advance(5_000);
    remote.put("b");
    await clock.advance(100);
    expect([listed(), watched.storeOf(CLUSTER) === store]).toEqual([["a", "b"], true]);
    expect(changes).toEqual(["eu", "eu"]);
  });

  it("are listed anew at another server", async () => {
    const { remote, putSecret, run, listed, changes } = setup();
    remote.put("a");
    putSecret({ kubeconfig: kubeconfig() });
    await run();
    putSecret({ kubeconfig: kubeconfig(TOKEN, "https://eu.internal") });
    await run();
    expect(remote.connections.map(({ server }) => server)).toEqual(["https://eu.internal"]);
    expect([listed(), changes]).toEqual([["a"], ["eu", "eu", "eu"]]);
  });

  it.each<[string, (world: ReturnType<typeof setup>) => void]>([
    ["the MeshCluster", ({ names }) => void names.pop()],
    ["the last app that divides clusters", ({ stopDividing }) => stopDividing()],
  ])("are not watched when %s is gone", async (_, change) => {
    const world = setup();
    world.putSecret({ kubeconfig: kubeconfig() });
    await world.run();
    change(world);
    expect(await world.run()).toEqual({});
    expect([world.remote.connections, world.listed()]).toEqual([[], undefined]);
  });
});

describe("a Secret", () => {
  it("that the manager may not get names the verb, the Secret and the manager, and is tried again ever later", async () => {
    const { home, run, state } = setup();
    home.before = ({ verb }) => {
      if (verb !== "get") return;
      throw new StatusError(
        "Forbidden",
        'secrets "eu-namespaces" is forbidden: User "system:serviceaccount:mesh:manager" cannot',
      );
    };
    const waits = [];
    for (let at = 0; at < 6; at++) waits.push((await run()).requeueAfterMs);
    expect(waits).toEqual([1_500, 3_000, 6_000, 12_000, 22_500, 22_500]);
    expect(state()).toEqual({
      reason: "SecretNotReadable",
      message:
        "the manager may not get Secret eu-namespaces: bind a Role with the verb get on secrets, resourceNames [eu-namespaces], to system:serviceaccount:mesh:manager",
    });
  });

  it("is read by get alone", async () => {
    const { home, putSecret, run } = setup();
    putSecret({ kubeconfig: kubeconfig() });
    await run();
    expect(home.calls.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual(["get secrets"]);
  });

  it.each<[string, Record<string, string>, string, RegExp]>([
    ["without a kubeconfig", { token: "x" }, "SecretNotReadable", /none of the keys kubeconfig, value, config/],
    [
      "with a hostile kubeconfig",
      { kubeconfig: kubeconfig(TOKEN, "https://eu.example", { exec: { command: "sh" } }) },
      "KubeconfigRefused",
      /eu-namespaces: user\.exec: not allowed/,
    ],
    [
      "for another server",
      { kubeconfig: kubeconfig(TOKEN, "https://kubernetes.default.svc") },
      "KubeconfigRefused",
      /cluster\.server/,
    ],
    [
      "that is too long",
      { kubeconfig: `${kubeconfig()}#${"x".repeat(200_000)}` },
      "KubeconfigRefused",
      /longer than 65536 bytes/,
    ],
  ])("%s opens no connection, and ends the present one", async (_, data, reason, message) => {
    const { remote, putSecret, run, state, listed } = setup();
    putSecret({ kubeconfig: kubeconfig() });
    await run();
    putSecret(data);
    await run();
    expect(state()).toEqual({ reason, message: expect.stringMatching(message) });
    expect([remote.connections, listed()]).toEqual([[], undefined]);
  });

  it("of one cluster changes nothing for another one", async () => {
    const { names, putSecret, run, watched } = setup();
    names.push("us");
    putSecret({ kubeconfig: kubeconfig(TOKEN, "https://us.example") }, "us-namespaces");
    await run();
    expect([watched.stateOf(CLUSTER).reason, watched.stateOf({ ...CLUSTER, name: "us" }).reason]).toEqual([
      "SecretNotReadable",
      "Listed",
    ]);
  });

  it("that cannot be read for a moment ends no watch", async () => {
    const { home, putSecret, run, state } = setup();
    putSecret({ kubeconfig: kubeconfig() });
    await run();
    home.before = () => {
      throw new StatusError("ServiceUnavailable", "the API server at home restarts");
    };
    expect((await run()).requeueAfterMs).toBe(1_500);
    expect(state().reason).toBe("Listed");
  });
});

describe("a cluster that does not serve its namespaces", () => {
  const refusal = new StatusError("Forbidden", `no: ${TOKEN}`);

  it("that does not accept the credentials is told from one that does not allow the list", async () => {
    const { remote, putSecret, run, state } = setup();
    remote.failure = new StatusError("Unauthorized", "no");
    putSecret({ kubeconfig: kubeconfig() });
    await run();
    expect(state()).toEqual({
      reason: "Forbidden",
      message: "eu.example refuses the manager (HTTP 401): it does not accept the token or client certificate of the kubeconfig",
    });
  });

  it("says so at once before the first list, and shows neither the token nor words of the server", async () => {
    const { remote, putSecret, run, state, states, lines } = setup();
    remote.failure = refusal;
    putSecret({ kubeconfig: kubeconfig() });
    await run();
    expect(state()).toEqual({
      reason: "Forbidden",
      message: "eu.example refuses the manager (HTTP 403): the kubeconfig's user needs list and watch on namespaces",
    });
    expect(states).toEqual(["eu NotListedYet", "eu Forbidden"]);
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.join()).not.toContain(TOKEN);
  });

  it("says so after the first list only if it lasts, and keeps the namespaces that are known", async () => {
    const { remote, putSecret, run, state, listed, clock, changes, states } = setup();
    remote.put("a");
    putSecret({ kubeconfig: kubeconfig() });
    await run();
    remote.failure = new Error("socket");
    remote.kube.endWatches(new Error("socket"));
    await clock.advance(20_000);
    expect([state().reason, listed()]).toEqual(["Listed", ["a"]]);
    await clock.advance(20_000);
    await run();
    expect([state().reason, listed(), changes]).toEqual(["Unreachable", ["a"], ["eu"]]);
    remote.failure = undefined;
    await clock.advance(40_000);
    remote.put("b");
    await clock.advance(100);
    expect([state().reason, listed()]).toEqual(["Listed", ["a", "b"]]);
    expect(states.at(-1)).toBe("eu Listed");
  });
});

it("the end of the leadership ends all watches", async () => {
  const { remote, putSecret, run, watched } = setup();
  putSecret({ kubeconfig: kubeconfig() });
  await run();
  await watched.runnable.stop();
  expect(remote.connections).toEqual([]);
});
