// Reconciles one VirtualApp: gathers the facts, plans, hands every proxy its snapshot, writes the status. Level-based: what
// it remembers is only the version counter, which a restart finds again in the status and in the proxies' hellos.
import { formatProblem } from "../../../api/problems.ts";
import { lockNameOf, type VirtualApp, validateVirtualApp } from "../../../api/virtual-app.ts";
import type { VirtualAppStatus } from "../../../api/virtual-app-status.ts";
import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import type { Pod } from "../../../kube/client/resources.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import type { KubeObject } from "../../../kube/types.ts";
import type { EventRecorder } from "../../../runtime/events.ts";
import type { Reconciler, Request, Result } from "../../../runtime/reconciler.ts";
import { writeStatus } from "../../../runtime/status-writer.ts";
import type { Store } from "../../../runtime/store.ts";
import { podClaims } from "../../handover/pod-claims.ts";
import { VIRTUAL_APPS } from "../../resources.ts";
import type { ProxyRegistry } from "../../snapshot-server/proxy-registry.ts";
import { type AppPod, appPods, podKey } from "../../translate/app-pods.ts";
import { appStatus, rejectedStatus } from "../../translate/app-status.ts";
import { type AppPlan, planApp } from "../../translate/plan-app.ts";
import { appEvents } from "./app-events.ts";
import { type Issue, nextIssue } from "./issue.ts";

export interface VirtualAppReconcilerOptions {
  readonly client: Pick<KubeClient, "get" | "patch">;
  readonly apps: Store<VirtualApp>;
  readonly pods: Store<Pod>;
  readonly namespaces: Store<KubeObject>;
  readonly registry: ProxyRegistry;
  readonly events: Pick<EventRecorder, "event">;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createVirtualAppReconciler(options: VirtualAppReconcilerOptions): Reconciler {
  const { apps, pods, namespaces, registry, clock, log } = options;
  const issued = new Map<string, Issue>();
  return {
    async reconcile(request: Request, signal: AbortSignal): Promise<Result> {
      const object = apps.get(request.name, request.namespace);
      if (object === undefined) {
        issued.delete(podKey(request)); // the proxies keep what they have
        return {};
      }
      const now = `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
      const common = { generation: object.metadata.generation ?? 0, previous: object.status, now };
      const checked = validateVirtualApp(object);
      if (!checked.ok) {
        const message = checked.problems.map(formatProblem).join("; ");
        await write(options, object, rejectedStatus({ ...common, message }), signal);
        return {};
      }
      const { spec } = checked.value;
      const facts = appPods({ name: request.name, spec }, pods.list(request.namespace));
      const plan = planApp({
        app: request,
        spec,
        namespaces: namespaces.list().map(({ metadata }) => ({ name: metadata.name ?? "", labels: metadata.labels ?? {} })),
        claims: podClaims(facts, registry.facts),
      });
      const issue = nextIssue(issued.get(podKey(request)), object.status?.routeVersion ?? 0, plan, facts, registry);
      if (issue.version !== issued.get(podKey(request))?.version) {
        log.info({ app: podKey(request), version: issue.version, waits: plan.waits.length }, "route issued");
      }
      issued.set(podKey(request), issue);
      publish(registry, facts, plan, issue);
      const { version } = issue;
      const lockName = lockNameOf(spec);
      const status = appStatus({ ...common, pods: facts, factsOf: registry.facts, plan, version, lockName });
      await write(options, object, status, signal);
      return {};
    },
  };
}

function publish(registry: ProxyRegistry, pods: readonly AppPod[], { rules }: AppPlan, issue: Issue): void {
  for (const pod of pods) {
    const own = rules.get(pod.subset);
    const version = issue.subsets.get(pod.subset)?.version;
    if (pod.meshed && own !== undefined && version !== undefined) registry.publish(podKey(pod), { ...own, version });
  }
}

async function write(
  { client, events }: VirtualAppReconcilerOptions,
  object: VirtualApp,
  status: VirtualAppStatus,
  signal: AbortSignal,
): Promise<void> {
  await writeStatus(client, VIRTUAL_APPS, object, status, { signal, fieldManager: "ctrlmesh-manager" });
  for (const { type, reason, message } of appEvents(object.status, status)) events.event(object, type, reason, message);
}
