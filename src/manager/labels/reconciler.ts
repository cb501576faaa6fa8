// Labels the objects of one resource for families with `labelObjects`: writes its policy, watches its objects
// and patches those without labels. Level-based: the next leader lists the objects again.
import { errorMessage } from "../../base/errors.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { metadataOnly, type Resource, resourceName } from "../../kube/client/resource.ts";
import { MUTATING_ADMISSION_POLICIES } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { GroupResource, KubeObject } from "../../kube/types.ts";
import type { Reconciler, Result } from "../../runtime/reconciler.ts";
import { createReflector, type Reflector } from "../../runtime/reflector.ts";
import type { Store } from "../../runtime/store.ts";
import { findResource, isAggregated, mayListPolicies, missingRights } from "./ask-server.ts";
import { createLabelCounts } from "./label-counts.ts";
import { isInForce, keepPolicy, removePolicy, type StoredPolicy } from "./label-policy.ts";
import { judgeLabels, type LabelReason, type LabelState, type LabelStates } from "./label-state.ts";
import { createPatcher, type MissingLabels } from "./patcher.ts";
import { isNamespaces, isOptedOut, LABEL_KEYS, missingLabels } from "./right-labels.ts";

interface LabelsReconcilerOptions extends Pick<ProcessContext, "clock" | "random" | "log"> {
  readonly client: Pick<KubeClient, "list" | "watch" | "create" | "patch" | "delete" | "request">;
  readonly namespaces: Pick<Store<KubeObject>, "list" | "get">;
  /** Undefined until the policies are listed. The first call begins to list them. */
  readonly policyOf: (of: GroupResource) => StoredPolicy | undefined;
  readonly isWanted: (of: GroupResource) => boolean;
  readonly states: LabelStates;
  readonly enqueue: (of: GroupResource) => void;
  readonly perSecond: number;
}

interface Labelling {
  readonly resource: Resource;
  readonly reflector: Reflector<KubeObject>;
  readonly counts: ReturnType<typeof createLabelCounts>;
  noPolicy: string | undefined;
  checkedRightsMs: number;
  policyFailure: string | undefined;
  policyWrittenMs: number;
  /** The reason that the state has, and when it last got numbers. */
  reason: LabelReason | undefined;
  countedMs: number;
}

const LOOK_AGAIN_MS = 60_000;
const NO_RIGHTS_MS = 10_000;
const NOT_LISTED_MS = 100;
const POLICY_EVERY_MS = 1_000;
/** New numbers alone cost each family that wants the resource a status patch. */
const COUNT_EVERY_MS = 10_000;

export function createLabelsReconciler(options: LabelsReconcilerOptions): Reconciler & { stop(): Promise<void> } {
  const { client, namespaces, states, clock } = options;
  const labellings = new Map<string, Labelling>();
  const patcher = createPatcher(options);

  async function drop(of: GroupResource) {
    const labelling = labellings.get(resourceName(of));
    labellings.delete(resourceName(of));
    await labelling?.reflector.stop();
    if (labelling !== undefined) patcher.forget(labelling.resource);
  }

  async function release(of: GroupResource, signal: AbortSignal): Promise<Result> {
    await drop(of);
    states.set(of, undefined);
    // An earlier leader may have left the policy.
    if (await mayListPolicies(client, signal)) await removePolicy(client, of, signal);
    return {};
  }

  /** The labelling, or the reason why the resource cannot be labelled. */
  async function begin(of: GroupResource, signal: AbortSignal): Promise<Labelling | readonly [LabelReason, string]> {
    const name = resourceName(of);
    const before = labellings.get(name);
    const checkedRightsMs = clock.monotonicMs();
    if (before !== undefined && checkedRightsMs - before.checkedRightsMs < LOOK_AGAIN_MS) return before;
    const resource = await findResource(client, of, signal);
    if (resource === undefined) return ["NotServed", `the API server does not serve ${name}`];
    if (!resource.namespaced && !isNamespaces(of)) return ["ClusterScoped", "objects without a namespace get no labels"];
    const isServed = (await findResource(client, MUTATING_ADMISSION_POLICIES, signal))?.version === "v1";
    const missing = await missingRights(client, of, isServed, signal);
    if (missing !== undefined) return ["Forbidden", missing];
    const notServed = isServed ? undefined : "the API server does not serve MutatingAdmissionPolicy v1";
    const noPolicy = (await isAggregated(client, resource, signal)) ? "an aggregated API server serves the resource" : notServed;
    if (before !== undefined) return Object.assign(before, { noPolicy, checkedRightsMs });
    const counts = createLabelCounts(of);
    const reflector = follow(of, resource, counts);
    const [policyWrittenMs, countedMs] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
    const followed = { resource, reflector, counts, noPolicy, checkedRightsMs };
    const labelling: Labelling = { ...followed, policyFailure: undefined, policyWrittenMs, reason: undefined, countedMs };
    labellings.set(name, labelling);
    return labelling;
  }

  function follow(of: GroupResource, resource: Resource, counts: Labelling["counts"]): Reflector<KubeObject> {
    const reflector = createReflector({ ...options, resource: metadataOnly(resource), transform: namesAndLabels });
    const { store } = reflector;
    store.onChange(counts.see);
    store.onChange(({ type, object }) => {
      if (!store.hasSynced || type === "deleted" || missingLabels(resource, object) === undefined) return;
      const home = namespaces.get(object.metadata.namespace ?? object.metadata.name ?? "");
      if (home === undefined || !isOptedOut(home)) options.enqueue(of);
    });
    void store.synced.then(() => options.enqueue(of));
    void reflector.start(new AbortController().signal);
    return reflector;
  }

  async function writePolicy(of: GroupResource, labelling: Labelling, stored: StoredPolicy, signal: AbortSignal) {
    // Another writer may undo each write.
    if (clock.monotonicMs() - labelling.policyWrittenMs < POLICY_EVERY_MS) return;
    labelling.policyWrittenMs = clock.monotonicMs();
    try {
      await keepPolicy(client, of, stored, signal);
      labelling.policyFailure = undefined;
    } catch (error) {
      signal.throwIfAborted();
      labelling.policyFailure = errorMessage(error); // for the status: existing objects get their labels all the same
    }
  }

  function judge(of: GroupResource, labelling: Labelling, isInForce: boolean): readonly MissingLabels[] {
    const { resource, reflector, noPolicy, policyFailure } = labelling;
    const optedOut = new Set(namespaces.list().flatMap((each) => (isOptedOut(each) ? [each.metadata.name ?? ""] : [])));
    const { missing, ...counts } = labelling.counts.read((name) => optedOut.has(name));
    const state = judgeLabels({
      ...counts,
      policy: noPolicy ?? { isInForce, failure: policyFailure },
      isListed: reflector.store.hasSynced,
      optedOut: isNamespaces(of) ? undefined : [...optedOut][0],
      failure: patcher.failureOf(resource, missing),
    });
    show(of, labelling, state);
    return missing;
  }

  /** The next reconcile, within LOOK_AGAIN_MS, shows numbers that are late. */
  function show(of: GroupResource, labelling: Labelling, state: LabelState) {
    const nowMs = clock.monotonicMs();
    if (labelling.reason === state.reason && nowMs - labelling.countedMs < COUNT_EVERY_MS) return;
    Object.assign(labelling, { reason: state.reason, countedMs: nowMs });
    states.set(of, state);
  }

  return {
    async reconcile({ namespace: group, name: resource }, signal) {
      const of = { group, resource };
      if (!options.isWanted(of)) return release(of, signal);
      const labelling = await begin(of, signal);
      if (!("resource" in labelling)) {
        const [reason, message] = labelling;
        await drop(of);
        states.set(of, { total: 0, labelled: 0, reason, message });
        return { requeueAfterMs: reason === "ClusterScoped" ? LOOK_AGAIN_MS : NO_RIGHTS_MS };
      }
      const hasPolicy = labelling.noPolicy === undefined;
      const stored = hasPolicy ? options.policyOf(of) : undefined;
      if (hasPolicy && stored === undefined) return { requeueAfterMs: NOT_LISTED_MS };
      const isRight = stored !== undefined && isInForce(of, stored);
      if (isRight) labelling.policyFailure = undefined;
      const missing = judge(of, labelling, isRight);
      if (stored !== undefined && !isRight) await writePolicy(of, labelling, stored, signal);
      const againMs = await patcher.patch(labelling.resource, missing, signal);
      const policyMs = isRight || !hasPolicy ? LOOK_AGAIN_MS : POLICY_EVERY_MS;
      return { requeueAfterMs: Math.max(1, Math.min(againMs ?? LOOK_AGAIN_MS, policyMs)) };
    },
    async stop() {
      await Promise.all([...labellings.values()].map(({ reflector }) => reflector.stop()));
      labellings.clear();
    },
  };
}

// The manager watches all objects of the resource, so it keeps only these fields.
function namesAndLabels({ metadata }: KubeObject): KubeObject {
  const { name = "", namespace, uid = "", resourceVersion = "", labels = {} } = metadata;
  const kept = Object.fromEntries(LABEL_KEYS.flatMap((key) => (labels[key] === undefined ? [] : [[key, labels[key]]])));
  return { metadata: { name, ...(namespace === undefined ? {} : { namespace }), uid, resourceVersion, labels: kept } };
}
