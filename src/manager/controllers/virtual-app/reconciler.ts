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
import { formatRequest, type Reconciler, type Request, type Result } from "../../../runtime/reconciler.ts";
import { writeStatus } from "../../../runtime/status-writer.ts";
import type { Store } from "../../../runtime/store.ts";
import { podClaims } from "../../handover/pod-claims.ts";
import { VIRTUAL_APPS } from "../../resources.ts";
import type { ProxyRegistry } from "../../snapshot-server/proxy-registry.ts";
import { type AppPod, appPods, podKey } from "../../translate/app-pods.ts";
import { appStatus, rejectedStatus } from "../../translate/app-status.ts";
import { notSupported } from "../../translate/not-supported.ts";
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
  const written = new Map<string, VirtualApp>();

  /** The status that the next one follows: what was written last, also before the watch has brought it back. */
  const previousOf = (object: VirtualApp, key: string) => {
    const last = written.get(key);
    const isNewer = last?.metadata.uid === object.metadata.uid && last?.metadata.generation === object.metadata.generation;
    return isNewer ? last?.status : object.status;
  };

  return {
    async reconcile(request: Request, signal: AbortSignal): Promise<Result> {
      const key = formatRequest(request);
      const object = apps.get(request.name, request.namespace);
      if (object === undefined) {
        issued.delete(key); // the proxies keep what they have
        written.delete(key);
        return {};
      }
      const now = `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
      const previous = previousOf(object, key);
      const common = { generation: object.metadata.generation ?? 0, previous, now };
      const write = async (status: VirtualAppStatus) => {
        const { client, events } = options;
        const after = await writeStatus(client, VIRTUAL_APPS, object, status, { signal, fieldManager: "ctrlmesh-manager" });
        if (after === undefined) return;
        written.set(key, after);
        for (const { type, reason, message } of appEvents(previous, status)) events.event(object, type, reason, message);
      };

      const checked = validateVirtualApp(object);
      if (!checked.ok) {
        await write(rejectedStatus({ ...common, reason: "Invalid", message: problemsText(checked.problems.map(formatProblem)) }));
        return {};
      }
      const { spec } = checked.value;
      const idle = notSupported(spec);
      const facts = appPods({ name: request.name, spec }, pods.list(request.namespace));
      const plan = planApp({
        app: request,
        spec,
        annotations: object.metadata.annotations ?? {},
        namespaces: namespaces.list().map(({ metadata }) => ({ name: metadata.name ?? "", labels: metadata.labels ?? {} })),
        claims: podClaims(request, facts, registry.facts),
      });
      const issue = nextIssue(issued.get(key), object.status?.routeVersion ?? 0, plan, facts, registry);
      if (issue.version !== issued.get(key)?.version) {
        log.info({ app: key, version: issue.version, waits: plan.waits.length }, "route issued");
      }
      issued.set(key, issue);
      publish(registry, facts, plan, issue);
      const { version } = issue;
      const lockName = lockNameOf(spec);
      await write(appStatus({ ...common, pods: facts, factsOf: registry.facts, plan, version, lockName, idle }));
      return {};
    },
  };
}

const MAX_PROBLEMS = 10;

function problemsText(problems: readonly string[]): string {
  const more = problems.length - MAX_PROBLEMS;
  return problems.slice(0, MAX_PROBLEMS).join("; ") + (more > 0 ? `; and ${more} more` : "");
}

function publish(registry: ProxyRegistry, pods: readonly AppPod[], { rules }: AppPlan, issue: Issue): void {
  for (const pod of pods) {
    const own = rules.get(pod.subset);
    const version = issue.subsets.get(pod.subset)?.version;
    if (pod.proxy === "own" && own !== undefined && version !== undefined) registry.publish(podKey(pod), { ...own, version });
  }
}
