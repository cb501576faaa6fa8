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
const { signal } = new AbortController();
const right = { "ctrlmesh.kusionstack.io/namespace": "a", "ctrlmesh.kusionstack.io/shard-hash": "1" };

interface Options {
  readonly servesPolicies?: boolean;
  readonly isAggregated?: boolean;
  readonly denied?: string;
  readonly perSecond?: number;
}

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

function world({ servesPolicies = true, isAggregated = false, denied, perSecond = 1_000 }: Options = {}) {
  const [client, clock] = [createFakeKubeClient(), createFakeClock()];
  const states = createLabelStates(new Map([["configmaps", ["a/family"]]]));
  const namespaces = createStore<KubeObject>(() => undefined);
  const opted = { wanted: true };
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
    client,
    namespaces,
    states,
    clock,
    perSecond,
    random: () => 0.5,
    policyOf: read,
    isWanted: () => opted.wanted,
    enqueue: () => undefined,
    log: createLogger({ name: "test", level: "silent" }),
  });
  stops.push(reconciler.stop);
  const reconcile = async () => {
    const running = reconciler.reconcile(REQUEST, signal);
    await clock.advance(5);
    return running;
  };
  const changes: string[] = [];
  states.onChange(() => changes.push(states.get(OF, { namespace: "a", name: "family" })?.message ?? ""));
  const state = () => states.get(OF, { namespace: "a", name: "family" })?.reason;
  /** Several reconciles, with time for lists and watches between them. */
  const settle = async () => {
    for (let round = 0; round < 4; round++) await reconcile();
    return state();
  };
  const put = (labels: Readonly<Record<string, string>> = {}, object = "x") =>
    client.put(CONFIG_MAPS, { metadata: { namespace: "a", name: object, labels } });
  const labelsOf = (object = "x") => client.read(CONFIG_MAPS, { namespace: "a", name: object })?.metadata.labels;
  return { client, clock, namespaces, opted, read, reconcile, settle, state, changes, put, labelsOf };
}

describe("the labels of a resource", () => {
  it("are complete when a list shows all of them and the policy is in force", async () => {
    const { client, settle, put, labelsOf, read } = world();
    put();
    expect(await settle()).toBe("Complete");
    expect(labelsOf()).toEqual(right);
    expect(read().policy?.spec.failurePolicy).toBe("Fail");
    expect(client.calls.filter(({ verb }) => verb === "list")).toHaveLength(1);
  });

  it("are not complete while an object lacks them", async () => {
    const { clock, settle, reconcile, state, put } = world();
    expect(await settle()).toBe("Complete");
    put({ ...right, "ctrlmesh.kusionstack.io/namespace": "b" });
    await clock.advance(1); // the watch
    await reconcile();
    expect(state()).toBe("Labelling");
    expect(await settle()).toBe("Complete");
  });

  it("tell all families new numbers only every 10 seconds, and at once when they are complete", async () => {
    const { clock, settle, put, changes, reconcile, state } = world({ perSecond: 30 });
    for (let at = 0; at < 600; at++) put({}, `x-${at}`);
    await reconcile();
    for (let second = 0; second < 30 && state() !== "Complete"; second++) {
      const running = reconcile();
      await clock.advance(1_100);
      await running;
    }
    expect(await settle()).toBe("Complete");
    expect(changes.length).toBeLessThanOrEqual(6);
    expect(changes.at(-1)).toBe("all 600 are labelled");
  });

  it("are not complete while the policy is missing or changed, which is repaired", async () => {
    const { client, clock, settle, reconcile, state, read } = world();
    expect(await settle()).toBe("Complete");
    await clock.advance(1_000); // at most one write a second
    client.remove(MUTATING_ADMISSION_POLICY_BINDINGS, { name: policyName(OF) });
    await reconcile();
    expect(state()).toBe("NoPolicy");
    expect(read().binding).toBeDefined();
    const { policy } = read();
    const spec = { ...policy?.spec, matchConditions: [{ name: "never", expression: "false" }] };
    client.put(MUTATING_ADMISSION_POLICIES, { ...policy, spec } as never);
    await clock.advance(1_000);
    await settle();
    expect(read().policy?.spec).not.toHaveProperty("matchConditions");
  });

  it("are not complete while a namespace is opted out, and its objects get none", async () => {
    const { namespaces, settle, put, labelsOf } = world();
    namespaces.replace([{ metadata: { name: "a", labels: { "ctrlmesh.kusionstack.io/control": "false" } } }]);
    put();
    expect(await settle()).toBe("OptedOut");
    expect(labelsOf()).toEqual({});
  });

  it.each([{ servesPolicies: false }, { isAggregated: true }])("come later and are never complete with %j", async (options) => {
    const { settle, put, labelsOf, read } = world(options);
    put();
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
    expect(await settle()).toBe("Complete");
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
    expect(await settle()).toBeUndefined();
    expect(read()).toEqual({ policy: undefined, binding: undefined });
    expect(labelsOf()).toEqual(right);
    put({}, "later");
    await settle();
    expect(labelsOf("later")).toEqual({});
  });
});
