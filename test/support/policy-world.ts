// The policies of a namespace for unit tests: real kinds, a manager that can restart, and proxies with the
// real handler of policies, over a fake API server and clock.
import type { Condition } from "../../src/api/conditions.ts";
import { INJECTED_LABEL } from "../../src/api/injected-pod.ts";
import type { PolicyStatus } from "../../src/api/policy-status.ts";
import { silentLogger } from "../../src/base/log.ts";
import type { Resource } from "../../src/kube/client/resource.ts";
import type { Pod } from "../../src/kube/client/resources.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import type { App } from "../../src/manager/apps/app.ts";
import { POLICY_KINDS } from "../../src/manager/policies/add.ts";
import type { PolicyObject } from "../../src/manager/policies/policy-kind.ts";
import { createPoliciesReconciler } from "../../src/manager/policies/reconciler.ts";
import type { ProxyRegistry } from "../../src/manager/server/proxy-registry.ts";
import { NO_REPORTS, type PolicyReportMessage, type RuleStateMessage } from "../../src/mesh/contract/messages.ts";
import { POLICY, type PolicyResource } from "../../src/mesh/contract/policy-type.ts";
import { acceptsType } from "../../src/mesh/contract/resource-type.ts";
import { type PodKey, type ProxyFacts, podKey } from "../../src/mesh/handover/proxy-facts.ts";
import { NO_POLICIES, type PolicySet } from "../../src/policy/policy.ts";
import type { BreakerFile } from "../../src/proxy/policies/breaker-file.ts";
import type { RunningPolicies } from "../../src/proxy/policies/policies.ts";
import type { PolicyFile } from "../../src/proxy/policies/policy-file.ts";
import { createPolicyHandler } from "../../src/proxy/session/policy-handler.ts";
import { createStore } from "../../src/runtime/store.ts";
import { createFakeClock } from "./fake-clock.ts";
import { createFakeKubeClient } from "./fake-kube-client.ts";

const NAMESPACE = "ops";

/** A proxy that has registered. */
export function createPolicyProxy() {
  let enforced: PolicySet = NO_POLICIES;
  let digest = "";
  const policies = {
    enforce(set: PolicySet, next: string) {
      enforced = set;
      digest = next;
    },
    onChange: () => undefined,
    report: { digest: "", rules: [] },
    openBreakers: [],
    restore: () => undefined,
  } as unknown as RunningPolicies;
  const file = { load: async () => undefined, save: async () => undefined } as unknown as PolicyFile;
  const breakers = { load: async () => undefined, save: async () => undefined } as unknown as BreakerFile;
  const handler = createPolicyHandler({ policies, file, breakers, report: () => undefined, log: silentLogger() });
  const capabilities = new Set([acceptsType(POLICY.name)]);
  return {
    capabilities,
    isConnected: true,
    isRegistered: true,
    rules: [] as RuleStateMessage[],
    take({ version, digest: sent, ...set }: PolicyResource): void {
      const body = POLICY.encode({ version, digest: sent, ...set });
      const resource = { type: POLICY.name, version, digest: sent, body };
      const answers = { ack: () => undefined, nack: () => undefined, needsWhole: () => undefined };
      handler.take({ nonce: 1, resource, baseDigest: "" }, answers);
    },
    get report(): PolicyReportMessage {
      return { digest, rules: this.rules };
    },
    /** The rules in force, as OBJECT/RULE. */
    get inForce(): string[] {
      const all = [...enforced.limits, ...enforced.faults, ...enforced.egress];
      return all.map(({ origin }) => `${origin.name}/${origin.rule}`).sort();
    },
  };
}

export type PolicyProxy = ReturnType<typeof createPolicyProxy>;

export function createPolicyWorld() {
  const [client, clock] = [createFakeKubeClient(), createFakeClock()];
  const kinds = POLICY_KINDS.map((kind) => ({ kind, store: newStore() }));
  const pods: Pod[] = [];
  const apps = new Map<string, { readonly pods: { subsetOf(): string } }>();
  const proxies = new Map<PodKey, PolicyProxy>();
  const facts = new Map<PodKey, Partial<ProxyFacts>>();
  const events: string[] = [];
  let now = clock.now();
  const registry = {
    publish: (pod: PodKey, _type: unknown, resource: PolicyResource) => proxies.get(pod)?.take(resource),
    facts(pod: PodKey) {
      const proxy = proxies.get(pod);
      if (proxy?.isRegistered !== true) return undefined;
      const { capabilities, isConnected: connected, report: policies } = proxy;
      return { ...NO_REPORTS, capabilities, connected, acknowledged: undefined, problems: {}, policies, ...facts.get(pod) };
    },
  } as unknown as ProxyRegistry;
  const start = () =>
    createPoliciesReconciler({
      ...{ kinds, registry, client, clock },
      apps: {
        get: (name) => apps.get(name) as App | undefined,
        list: () => [...apps.values()] as unknown as App[],
        hasSynced: true,
      },
      pods: { list: () => pods },
      events: {
        event: (object, type, reason, message) => void events.push(`${type} ${reason} ${object.metadata.name ?? ""}: ${message}`),
      } as Parameters<typeof createPoliciesReconciler>[0]["events"],
    });
  let manager = start();
  const resourceOf = (kind: string): Resource<PolicyObject> => {
    const found = POLICY_KINDS.find(({ resource }) => resource.kind === kind);
    if (found === undefined) throw new Error(`no policy kind ${kind}`);
    return found.resource;
  };
  const statusOf = (kind: string, name: string): PolicyStatus | undefined =>
    client.read<PolicyObject>(resourceOf(kind), { namespace: NAMESPACE, name })?.status;
  return {
    client,
    clock,
    events,
    apps,
    proxies,
    facts,
    app: (name: string, subset = "") => void apps.set(name, { pods: { subsetOf: () => subset } }),
    pod(name: string, app: string, proxy: PolicyProxy = createPolicyProxy()) {
      const labels = { app: "shop", [INJECTED_LABEL]: app };
      pods.push({
        metadata: { namespace: NAMESPACE, name, uid: name, labels },
        spec: { nodeName: "node" },
        status: { podIP: "10.0.0.1" },
      } as unknown as Pod);
      proxies.set(podKey({ namespace: NAMESPACE, name }), proxy);
      return proxy;
    },
    put(name: string, object: Readonly<Record<string, unknown>>, metadata: Partial<KubeObject["metadata"]> = {}) {
      const resource = resourceOf(String(object.kind));
      const before = client.read<PolicyObject>(resource, { namespace: NAMESPACE, name });
      const generation = (before?.metadata.generation ?? 0) + 1;
      const meta = { ...before?.metadata, namespace: NAMESPACE, name, generation, ...metadata };
      client.put(resource, { ...before, ...object, metadata: meta } as PolicyObject);
    },
    remove: (kind: string, name: string) => client.remove(resourceOf(kind), { namespace: NAMESPACE, name }),
    exists: (kind: string, name: string) => client.read(resourceOf(kind), { namespace: NAMESPACE, name }) !== undefined,
    restartManager() {
      manager = start();
    },
    statusOf,
    conditionOf: (kind: string, name: string, type: string): Condition | undefined =>
      statusOf(kind, name)?.conditions?.find((each) => each.type === type),
    /** The watches catch up, and a second later the statuses are written. */
    async reconcile() {
      let result = {};
      for (let round = 0; round < 2; round++) {
        for (const { kind, store } of kinds) {
          const { items } = await client.list(kind.resource, {});
          store.replace(items as PolicyObject[]);
        }
        if (clock.now() <= now) await clock.advance(1_000);
        now = clock.now();
        result = await manager.reconcile({ namespace: "", name: NAMESPACE }, new AbortController().signal);
      }
      return result;
    },
  };
}

function newStore() {
  return createStore<PolicyObject>((error) => {
    throw error;
  });
}
