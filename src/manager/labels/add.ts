// Watches what the labels controller needs: the apps, which say what is labelled; the namespaces, which may
// be opted out; and the policies. A request names a resource, with its group as the namespace.
import { metadataOnly, resourceName } from "../../kube/client/resource.ts";
import { MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICY_BINDINGS, NAMESPACES } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { GroupResource } from "../../kube/types.ts";
import { type Controller, changed, controllerOf, generationChanged } from "../../runtime/controller.ts";
import type { Informers } from "../../runtime/informers.ts";
import type { Request } from "../../runtime/reconciler.ts";
import { type App, isLive } from "../apps/app.ts";
import type { ControllerBase, ManagerContext } from "../context/manager-context.ts";
import { mayListPolicies } from "./ask-server.ts";
import { type LabelFamilies, mayLabel } from "./label-families.ts";
import { policyName, resourceOfPolicy, type StoredPolicy } from "./label-policy.ts";
import type { LabelStates } from "./label-state.ts";
import { createLabelsReconciler } from "./reconciler.ts";
import { isOptedOut } from "./right-labels.ts";

const DEBOUNCE_MS = 50;
/** So a resource that waits for its turn to be patched does not delay the state of another one. */
const CONCURRENCY = 4;

interface LabelsControllerOptions extends ControllerBase, Pick<ManagerContext, "sources" | "apps" | "clock" | "random"> {
  readonly families: LabelFamilies;
  readonly states: LabelStates;
  readonly perSecond: number;
}

const requestOf = ({ group, resource }: GroupResource): Request => ({ namespace: group, name: resource });

export function addLabelsController(options: LabelsControllerOptions): Controller {
  const { client, informers, sources, apps, families, log } = options;
  const namespaces = informers.store(metadataOnly(NAMESPACES));
  const wantedBy = ({ ref, spec }: App) => (spec?.labelled ?? []).filter((of) => mayLabel(families, ref, of));
  const wanted = () => apps.list().flatMap((app) => (isLive(app) ? wantedBy(app) : []));
  const enqueue = (of: GroupResource) => controller.enqueue(requestOf(of));
  const policies = createPolicyStores(informers, enqueue);
  const reconciler = createLabelsReconciler({
    ...options,
    namespaces,
    enqueue,
    policyOf: policies.policyOf,
    isWanted: (of) => wanted().some((each) => resourceName(each) === resourceName(of)),
  });
  const controller = sources
    .reduce(
      (builder, source) =>
        // The resources before an edit are queued too, so that unwanted policies are removed.
        builder.watches(source.resource, (object) => source.labelledBy(object).map(requestOf), {
          predicates: [generationChanged],
        }),
      controllerOf({ name: "labels", debounceMs: DEBOUNCE_MS, concurrency: CONCURRENCY, ...options }),
    )
    .watches(metadataOnly(NAMESPACES), (namespace) => (isOptedOut(namespace) ? wanted().map(requestOf) : []), {
      predicates: [changed(isOptedOut)],
    })
    .withReconciler(reconciler);
  return {
    ...controller,
    async start(signal) {
      await controller.start(signal);
      enqueueLeftOver(client, enqueue, signal).catch((error: unknown) =>
        log.warn({ err: error }, "policies of an earlier leader not listed"),
      );
    },
    async stop() {
      await controller.stop();
      await reconciler.stop();
      await policies.stop();
    },
  };
}

/** An earlier leader may have ended before it removed a policy that nobody wants any more. */
async function enqueueLeftOver(client: KubeClient, enqueue: (of: GroupResource) => void, signal: AbortSignal) {
  if (!(await mayListPolicies(client, signal))) return;
  for (const { metadata } of (await client.list(MUTATING_ADMISSION_POLICIES, { signal })).items) {
    const of = resourceOfPolicy(metadata.name ?? "");
    if (of !== undefined) enqueue(of);
  }
}

/** Watches policies only if needed: an API server may not serve them, and the manager may have no right. */
function createPolicyStores(informers: Informers, enqueue: (of: GroupResource) => void) {
  const open = () => {
    const policies = informers.acquire(MUTATING_ADMISSION_POLICIES);
    const bindings = informers.acquire(MUTATING_ADMISSION_POLICY_BINDINGS);
    for (const { store } of [policies, bindings]) {
      store.onChange(({ object }) => {
        const of = resourceOfPolicy(object.metadata.name ?? "");
        if (of !== undefined) enqueue(of);
      });
    }
    return { policies, bindings };
  };
  let stores: ReturnType<typeof open> | undefined;
  return {
    policyOf(of: GroupResource): StoredPolicy | undefined {
      stores ??= open();
      const { policies, bindings } = stores;
      if (!policies.store.hasSynced || !bindings.store.hasSynced) return undefined;
      return { policy: policies.store.get(policyName(of)), binding: bindings.store.get(policyName(of)) };
    },
    async stop() {
      await Promise.all([stores?.policies.release(), stores?.bindings.release()]);
      stores = undefined;
    },
  };
}
