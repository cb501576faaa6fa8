// The webhooks of an operator of two subsets, on the real control plane with a node that runs pods. The API server reaches the pods by the operator's
// Service, so any pod gets any review. The operator itself reports what each pod answers. What takes longer is in test/nightly/operator-webhooks.test.ts.
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { admitWhileMoving } from "../support/install/admit-while-moving.ts";
import { askPod } from "../support/install/ask-pod.ts";
import { type GadgetWorld, startGadgetWorld, subsetOf } from "../support/install/gadget-world.ts";
import { DEFAULTED_BY, GADGETS, gadgetApp, RECONCILED_BY } from "../support/install/gadgets.ts";
import { answerWhileStruck, cutOff } from "../support/install/struck-pod.ts";
import { describeWithTestNode } from "../support/requirements.ts";

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
    const { calls, failed, wrong, answeredTwice, reviews, moves } = await admitWhileMoving(world, 400, 4);
    expect(calls).toBeGreaterThanOrEqual(400);
    expect(moves).toBeGreaterThanOrEqual(4);
    expect({ failed, wrong, answeredTwice }).toEqual({ failed: [], wrong: [], answeredTwice: [] });
    expect(reviews).toBeGreaterThanOrEqual(2 * calls);
    expect(await forwarded("api-server")).toBeGreaterThan(0);
    expect(await forwarded("peer")).toBe(0); // one hop at most
  });

  it("get no wrong and no late answer while a pod of the owner is cut off from the network", async () => {
    await answerWhileStruck(world, cutOff(world, "-I"), cutOff(world, "-D"));
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
});
