// The webhooks of an operator of two subsets, on the real control plane with a node that runs pods. The API server reaches the pods by the operator's
// Service, so any pod gets any review. The operator itself reports what each pod answers.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { type Call, startAdmissionLoad } from "../support/install/admission-load.ts";
import { admitWhileMoving } from "../support/install/admit-while-moving.ts";
import { askPod } from "../support/install/ask-pod.ts";
import { type GadgetWorld, startGadgetWorld, subsetOf } from "../support/install/gadget-world.ts";
import {
  DEFAULTED_BY,
  GADGET_NAMESPACE,
  GADGET_OPERATOR,
  GADGETS,
  gadgetApp,
  gadgetHome,
  gadgetWebhooks,
  gadgetWorkload,
  RECONCILED_BY,
  TIMEOUT_SECONDS,
} from "../support/install/gadgets.ts";
import type { Review } from "../support/install/reviews.ts";
import { describeWithTestNode } from "../support/requirements.ts";
import { familyRoot } from "../support/sharding-config.ts";

const run = promisify(execFile);
const SIDECAR = "ctrlmesh-proxy";

describeWithTestNode("an operator's webhooks", () => {
  let world: GadgetWorld;
  beforeAll(async () => {
    world = await startGadgetWorld();
    await world.addNamespace("team-a", "");
    await world.addNamespace("canary-a", "v2");
  });
  afterAll(async () => {
    await world?.stop();
  });

  const create = (namespace: string, name: string, { message = "", labels = {}, dryRun = false } = {}) =>
    world.client.create(GADGETS, { metadata: { namespace, name, labels }, spec: message === "" ? {} : { message } }, { dryRun });
  const defaultedBy = async (namespace: string, labels = {}) =>
    (await create(namespace, `probe-${Math.random()}`, { labels, dryRun: true })).metadata.annotations?.[DEFAULTED_BY] ?? "";
  const reviewsOf = async (prefix: string) => (await world.reviews()).filter(({ name }) => name.startsWith(prefix));
  const forwarded = (from: string) => world.metric("ctrlmesh_proxy_reviews_total", { result: "forwarded", from });
  const subsetsThat = async (review: string, prefix: string) => [
    ...new Set((await reviewsOf(prefix)).filter((each) => each.review === review).map(({ pod }) => subsetOf(pod))),
  ];

  it.each([
    ["team-a", "", "gadget-(?!canary)"],
    ["canary-a", "v2", "gadget-canary-"],
  ])("default and validate the objects of %s by the pods of its subset", async (namespace, subset, pods) => {
    for (let index = 0; index < 20; index++) {
      const { metadata, spec } = await create(namespace, `${namespace}-${index}`);
      expect([spec?.message, subsetOf(metadata.annotations?.[DEFAULTED_BY] ?? "")]).toEqual(["hello", subset]);
    }
    const refused = create(namespace, `${namespace}-refused`, { message: "refuse this" });
    await expect(refused).rejects.toThrow(new RegExp(`${pods}\\S+ refuses the message`));
    expect(await subsetsThat("default", `${namespace}-`)).toEqual([subset]);
    expect(await subsetsThat("validate", `${namespace}-`)).toEqual([subset]);
  });

  it("are told of a dry run, and asked about what the operator itself writes", async () => {
    await create("canary-a", "dry", { dryRun: true });
    expect((await reviewsOf("dry")).map(({ dryRun }) => dryRun)).toEqual([true, true]);
    const [reconciled, defaulted] = await eventually(async () => {
      const { metadata } = await world.client.get(GADGETS, { namespace: "canary-a", name: "canary-a-0" });
      const by = metadata.annotations ?? {};
      return by[RECONCILED_BY] !== undefined && [by[RECONCILED_BY], by[DEFAULTED_BY]];
    });
    expect([reconciled, defaulted].map((pod = "") => subsetOf(pod))).toEqual(["v2", "v2"]);
  });

  it("convert the objects of any namespace", async () => {
    for (const namespace of ["team-a", "canary-a"]) {
      const path = `/apis/demo.ctrlmesh.io/v1beta1/namespaces/${namespace}/gadgets`;
      const { items } = (await world.client.request({ method: "GET", path })) as { items: { spec: object }[] };
      expect(items.map(({ spec }) => spec)).toEqual(Array(20).fill({ text: "hello" }));
    }
    const conversions = (await world.reviews()).filter(({ review }) => review === "convert").length;
    expect(conversions).toBeGreaterThan(0);
    // A call that is no review is counted as passed, by the proxy of the pod that converts.
    expect(await world.metric("ctrlmesh_proxy_reviews_total", { result: "passed", from: "api-server" })).toBe(conversions);
  });

  it("are each answered once and by the owner while namespaces move, without a failed call while the certificate changes twice", async () => {
    const { calls, failed, wrong, answeredTwice, reviews, moves } = await admitWhileMoving(world, 400);
    expect(calls).toBeGreaterThanOrEqual(400);
    expect(moves).toBeGreaterThanOrEqual(4);
    expect({ failed, wrong, answeredTwice }).toEqual({ failed: [], wrong: [], answeredTwice: [] });
    expect(reviews).toBeGreaterThanOrEqual(2 * calls);
    expect(await forwarded("api-server")).toBeGreaterThan(0);
    expect(await forwarded("peer")).toBe(0); // one hop at most
  });

  const signalled = (signal: NodeJS.Signals) => (pod: string) => world.mesh.cluster.kill(GADGET_NAMESPACE, pod, SIDECAR, signal);
  /** Adds or deletes the rules by which all packets from and to the pod are lost. */
  const cutOff = (edit: "-I" | "-D") => async (pod: string) => {
    const { nodePid, podIP } = world.mesh.cluster;
    const address = await podIP(GADGET_NAMESPACE, pod);
    for (const rule of [
      ["PREROUTING", "-s", address],
      ["POSTROUTING", "-d", address],
    ]) {
      await run("nsenter", [`--net=/proc/${nodePid}/ns/net`, "iptables", "-t", "mangle", edit, ...rule, "-j", "DROP"]);
    }
  };
  it.each([
    ["is killed", signalled("SIGKILL"), undefined],
    ["is stopped", signalled("SIGSTOP"), signalled("SIGCONT")],
    ["is cut off from the network", cutOff("-I"), cutOff("-D")],
  ])("get no wrong and no late answer while a pod of the owner %s", async (_, strike, mend) => {
    const [victim = ""] = await world.pods("v2");
    const load = startAdmissionLoad(world.client, ["canary-a", "team-a"]);
    await eventually(() => load.calls.length > 50);
    await strike(victim);
    const struckMs = Date.now();
    // Long enough for calls to the victim to end in an answer or at their limit, and then for many that succeed.
    const isLater = ({ fromMs, error }: Call) => fromMs > struckMs + TIMEOUT_SECONDS * 1000 && error === undefined;
    await eventually(() => load.calls.filter(isLater).length > 50, 30_000);
    const mendedMs = Date.now();
    await mend?.(victim);
    await load.end();
    const longestMs = Math.max(...load.calls.map(({ fromMs, toMs }) => toMs - fromMs));
    expect(longestMs).toBeLessThan(2 * TIMEOUT_SECONDS * 1000 + 2_000); // two reviews
    expect(await world.judge(load.calls)).toMatchObject({ wrong: [], answeredTwice: [] });
    const meanwhile = ({ pod, atMs }: Review) => pod === victim && atMs > struckMs + 1_000 && atMs < mendedMs;
    if (mend !== undefined) expect((await world.reviews()).filter(meanwhile)).toEqual([]);
    await world.mesh.rolledOut("deployment/gadget-canary", GADGET_NAMESPACE);
  });

  it("take a neighbour neither for a peer nor by its word", async () => {
    const [pod = ""] = await world.pods("");
    const listener = await world.listenerOf(pod);
    const headers = { "x-ctrlmesh-review-forwarded": "owner" };
    expect(subsetOf(await askPod(listener, "canary-a", { headers }))).toBe("v2");
    await expect(askPod(listener, "canary-a", { headers, servername: "peer.ctrlmesh" })).rejects.toThrow("403");
  });

  it("go by the labels of an object where labels divide", async () => {
    const resources = [{ apiGroups: [GADGETS.group], resources: [GADGETS.resource] }];
    await world.mesh.apply(gadgetApp([{ objectSelector: { matchLabels: { lane: "canary" } }, resources }]));
    await eventually(async () => subsetOf(await defaultedBy("team-a", { lane: "canary" })) === "v2", 20_000);
    for (let index = 0; index < 10; index++) {
      await create("team-a", `gold-${index}`, { labels: { lane: "canary" } });
      await create("team-a", `plain-${index}`);
    }
    for (let index = 0; index < 10; index++) await world.client.delete(GADGETS, { namespace: "team-a", name: `gold-${index}` });
    expect(await subsetsThat("default", "gold-")).toEqual(["v2"]);
    expect(await subsetsThat("validate", "gold-")).toEqual(["v2"]);
    expect(await subsetsThat("default", "plain-")).toEqual([""]);
    await world.mesh.apply(gadgetApp());
  });

  it("fail with 503 while no pod of the owner is there, so that failurePolicy decides", async () => {
    const scale = (replicas: number) =>
      world.mesh.run("scale", "deployment/gadget-canary", "-n", GADGET_NAMESPACE, `--replicas=${replicas}`);
    await scale(0);
    await world.mesh.run("wait", "--for=delete", "pod", "-l", "version=v2", "-n", GADGET_NAMESPACE, "--timeout=60s");
    await expect(create("canary-a", "orphan")).rejects.toThrow(
      /failed calling webhook "mutate.demo.ctrlmesh.io".*ctrlmesh: subset "v2" has no pod/,
    );
    expect(subsetOf(await defaultedBy("team-a"))).toBe("");
    await world.mesh.apply(...gadgetWebhooks(world.caPem, "Ignore"));
    const unstamped = await eventually(() => create("canary-a", "ignored", { dryRun: true }));
    expect(unstamped.metadata.annotations?.[DEFAULTED_BY]).toBeUndefined();
    await world.mesh.apply(...gadgetWebhooks(world.caPem));
    await scale(2);
    await eventually(async () => subsetOf(await defaultedBy("canary-a")) === "v2", 30_000);
  });

  it("go to the shard that owns the namespace, intercepted by iptables behind a numeric target port", async () => {
    const { apply, run: kubectl } = world.mesh;
    await kubectl("delete", "virtualapp", GADGET_OPERATOR, "-n", GADGET_NAMESPACE);
    await kubectl("delete", "deployment", "gadget", "gadget-canary", "-n", GADGET_NAMESPACE, "--cascade=foreground");
    await apply(...gadgetHome(world.caPem, { targetPort: 9443, security: "privileged" }));
    const resources = [[GADGETS.group, GADGETS.resource]] as const;
    const root = familyRoot({ namespace: GADGET_NAMESPACE, name: GADGET_OPERATOR }, { statefulSet: "gadget-shard", resources });
    await apply({ ...root, spec: { ...root.spec, webhook: { certDir: "/certs", port: 9443 } } });
    await kubectl(
      "wait",
      "shardingconfig",
      GADGET_OPERATOR,
      "-n",
      GADGET_NAMESPACE,
      "--for=condition=InjectionReady",
      "--timeout=60s",
    );
    const annotations = { "ctrlmesh.kruise.io/intercept": "iptables" };
    await apply(gadgetWorkload({ kind: "StatefulSet", name: "gadget-shard", replicas: 2, version: "v1", annotations }));
    await world.mesh.rolledOut("statefulset/gadget-shard", GADGET_NAMESPACE);
    const reconcilers = new Set<string>();
    for (const namespace of ["team-a", "canary-a", "moving-a", "moving-b"]) {
      await eventually(() => create(namespace, `${namespace}-sharded`), 30_000);
      const by = await eventually(async () => {
        const { metadata } = await world.client.get(GADGETS, { namespace, name: `${namespace}-sharded` });
        return metadata.annotations?.[RECONCILED_BY] ?? false;
      }, 30_000);
      reconcilers.add(by);
      for (let index = 0; index < 10; index++) expect(await defaultedBy(namespace)).toBe(by);
    }
    expect(reconcilers.size).toBe(2);
  });
});
