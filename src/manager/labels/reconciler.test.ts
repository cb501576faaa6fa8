import { afterEach, describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { createLogger } from "../../base/log.ts";
import { CONFIG_MAPS, MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICY_BINDINGS } from "../../kube/client/resources.ts";
import { StatusError } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";
import { createStore } from "../../runtime/store.ts";
import { policyName } from "./label-policy.ts";
import { createLabelStates } from "./label-state.ts";
import { createLabelsReconciler } from "./reconciler.ts";

const OF = { group: "", resource: "configmaps" };
const REQUEST = { namespace: "", name: "configmaps" };
const SETTLE_MS = 60_000;
const { signal } = new AbortController();
const right = { "ctrlmesh.kusionstack.io/namespace": "a", "ctrlmesh.kusionstack.io/shard-hash": "1" };

interface Options {
  readonly wasComplete?: boolean;
  readonly servesPolicies?: boolean;
  readonly isAggregated?: boolean;
  readonly denied?: string;
}

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

function world({ wasComplete = false, servesPolicies = true, isAggregated = false, denied }: Options = {}) {
  const [client, clock] = [createFakeKubeClient(), createFakeClock()];
  const states = createLabelStates(new Map([["configmaps", ["a/family"]]]));
  const namespaces = createStore<KubeObject>(() => undefined);
  const opted = { wanted: true, reliedOn: false };
  const namespaced = true;
  client.request = async ({ path, body }) => {
    if (path === "/api/v1") return { resources: [{ name: "configmaps", kind: "ConfigMap", namespaced }] };
    if (path === "/apis/admissionregistration.k8s.io") return { preferredVersion: { version: "v1" } };
    if (path === "/apis/admissionregistration.k8s.io/v1") {
      return { resources: servesPolicies ? [{ name: "mutatingadmissionpolicies", kind: "P", namespaced: false }] : [] };
    }
    if (path.includes("/apiservices/")) return { spec: isAggregated ? { service: { name: "x" } } : {} };
    const { verb } = (body as { spec: { resourceAttributes: { verb: string } } }).spec.resourceAttributes;
    return { status: { allowed: verb !== denied } };
  };
  const name = policyName(OF);
  const read = () => ({
    policy: client.read(MUTATING_ADMISSION_POLICIES, { name }),
    binding: client.read(MUTATING_ADMISSION_POLICY_BINDINGS, { name }),
  });
  const reconciler = createLabelsReconciler({
    ...{ client, namespaces, states, clock, settleMs: SETTLE_MS, perSecond: 1_000, random: () => 0.5 },
    policyOf: read,
    isWanted: () => opted.wanted,
    isReliedOn: () => opted.reliedOn,
    wasComplete: () => wasComplete,
    enqueue: () => undefined,
    log: createLogger({ name: "test", level: "silent" }),
  });
  stops.push(reconciler.stop);
  const reconcile = async () => {
    const running = reconciler.reconcile(REQUEST, signal);
    await clock.advance(5);
    return running;
  };
  const state = () => states.get(OF, { namespace: "a", name: "family" })?.reason;
  /** Several reconciles, with time for lists and watches between them. */
  const settle = async () => {
    for (let round = 0; round < 4; round++) await reconcile();
    return state();
  };
  const put = (labels: Readonly<Record<string, string>> = {}, object = "x") =>
    client.put(CONFIG_MAPS, { metadata: { namespace: "a", name: object, labels } });
  const labelsOf = (object = "x") => client.read(CONFIG_MAPS, { namespace: "a", name: object })?.metadata.labels;
  return { client, clock, namespaces, opted, read, reconcile, settle, state, put, labelsOf };
}

describe("the labels of a resource", () => {
  it("are complete when a list that began after the settling time of the policy shows all of them", async () => {
    const { client, clock, settle, put, labelsOf, read } = world();
    put();
    expect(await settle()).toBe("Settling");
    expect(labelsOf()).toEqual(right);
    expect(read().policy?.spec.failurePolicy).toBe("Fail");
    const lists = () => client.calls.filter(({ verb }) => verb === "list").length;
    expect(lists()).toBe(1);
    await clock.advance(SETTLE_MS - 1_000);
    expect(await settle()).toBe("Settling");
    await clock.advance(1_000);
    expect(await settle()).toBe("Complete");
    expect(lists()).toBe(2);
  });

  it("are listed again at once if the settling time ends in the middle of a reconcile", async () => {
    const { client, clock, put, reconcile, settle } = world();
    await settle();
    const { requeueAfterMs = 0 } = await reconcile();
    await clock.advance(requeueAfterMs - 20);
    put({});
    await clock.advance(5);
    client.before = async ({ verb }) => {
      if (verb === "patch") await clock.advance(30);
    };
    expect((await reconcile()).requeueAfterMs).toBe(1);
  });

  it("are complete at once for a new leader if the status said so, and only then", async () => {
    const first = world();
    await first.settle();
    const next = world({ wasComplete: true });
    for (const [resource, object] of [
      [MUTATING_ADMISSION_POLICIES, first.read().policy],
      [MUTATING_ADMISSION_POLICY_BINDINGS, first.read().binding],
    ] as const) {
      next.client.put(resource as typeof MUTATING_ADMISSION_POLICIES, object as never);
    }
    next.put(right);
    await next.reconcile();
    expect(next.state()).toBeUndefined(); // the last status counts
    expect(await next.settle()).toBe("Complete");
    const without = world({ wasComplete: true });
    without.put(right);
    expect(await without.settle()).toBe("Settling");
  });

  it("are not complete while an object lacks them, and then wait again", async () => {
    const { clock, settle, reconcile, state, put } = world();
    await settle();
    await clock.advance(SETTLE_MS);
    expect(await settle()).toBe("Complete");
    put({ ...right, "ctrlmesh.kusionstack.io/namespace": "b" });
    await clock.advance(1); // the watch
    await reconcile();
    expect(state()).toBe("Labelling");
    expect(await settle()).toBe("Settling");
    await clock.advance(SETTLE_MS);
    expect(await settle()).toBe("Complete");
  });

  it("are not complete while the policy is missing or changed, which is repaired", async () => {
    const { client, clock, settle, reconcile, state, read } = world();
    await settle();
    await clock.advance(SETTLE_MS);
    expect(await settle()).toBe("Complete");
    client.remove(MUTATING_ADMISSION_POLICY_BINDINGS, { name: policyName(OF) });
    await reconcile();
    expect(state()).toBe("Settling");
    expect(read().binding).toBeDefined();
    const { policy } = read();
    const spec = { ...policy?.spec, matchConditions: [{ name: "never", expression: "false" }] };
    client.put(MUTATING_ADMISSION_POLICIES, { ...policy, spec } as never);
    await clock.advance(1_000); // at most one write a second
    await settle();
    expect(read().policy?.spec).not.toHaveProperty("matchConditions");
  });

  it("are not complete while a namespace is opted out, and its objects get none", async () => {
    const { clock, namespaces, settle, put, labelsOf } = world();
    namespaces.replace([{ metadata: { name: "a", labels: { "ctrlmesh.kusionstack.io/control": "false" } } }]);
    put();
    await settle();
    await clock.advance(SETTLE_MS);
    expect(await settle()).toBe("OptedOut");
    expect(labelsOf()).toEqual({});
  });

  it.each([{ servesPolicies: false }, { isAggregated: true }])("come later and are never complete with %j", async (options) => {
    const { clock, settle, put, labelsOf, read } = world(options);
    put();
    await settle();
    await clock.advance(SETTLE_MS);
    expect(await settle()).toBe("NoPolicy");
    expect(labelsOf()).toEqual(right);
    expect(read().policy).toBeUndefined();
  });

  it("come also where the policy is refused, which the state says, and it is written once a second", async () => {
    const { client, clock, settle, put, labelsOf } = world();
    put();
    let writes = 0;
    client.before = ({ resource }) => {
      if (resource !== "mutatingadmissionpolicies") return;
      writes++;
      throw new StatusError("Forbidden", "not here");
    };
    expect(await settle()).toBe("Failing");
    expect(labelsOf()).toEqual(right);
    expect(writes).toBe(1);
    client.before = () => undefined;
    await clock.advance(1_000);
    expect(await settle()).toBe("Settling");
  });

  it("need rights, and without them nothing is listed", async () => {
    const { client, settle } = world({ denied: "patch" });
    expect(await settle()).toBe("Forbidden");
    expect(client.calls).toEqual([]);
  });

  it("stay when nobody wants them any more, and the policy goes", async () => {
    const { opted, settle, put, labelsOf, read } = world();
    put();
    await settle();
    opted.wanted = false;
    opted.reliedOn = true;
    expect(await settle()).toBeUndefined();
    expect(read().policy).toBeDefined(); // a proxy still selects by the labels
    opted.reliedOn = false;
    expect(await settle()).toBeUndefined();
    expect(read()).toEqual({ policy: undefined, binding: undefined });
    expect(labelsOf()).toEqual(right);
    put({}, "later");
    await settle();
    expect(labelsOf("later")).toEqual({});
  });
});
