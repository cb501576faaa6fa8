// Labels the objects of one resource for families with `labelObjects`: keeps its policy, follows its objects
// and patches those without labels. Level-based; a request names a resource. The memory of a resource can be
// lost: the next leader lists the objects again, and believes the last status that the resource was complete
// until its own list says otherwise.
import type { Clock, Random } from "../../base/clock.ts";
import { errorMessage } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { type Resource, resourceName } from "../../kube/client/resource.ts";
import { MUTATING_ADMISSION_POLICIES } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { Labels } from "../../kube/label-selector.ts";
import type { GroupResource, KubeObject } from "../../kube/types.ts";
import type { Reconciler, Result } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import { findResource, isAggregated } from "./find-resource.ts";
import { isInForce, keepPolicy, removePolicy, type StoredPolicy } from "./keep-policy.ts";
import { mayListPolicies, missingRights } from "./label-rights.ts";
import { judgeLabels, type LabelReason, type LabelStates } from "./label-state.ts";
import { type LabelTracker, startLabelTracker } from "./label-tracker.ts";
import { createPatcher, type MissingLabels } from "./patcher.ts";
import { countLabels, isNamespaces, isOptedOut } from "./right-labels.ts";

export interface LabelsReconcilerOptions {
  readonly client: Pick<KubeClient, "list" | "watch" | "patch" | "delete" | "request">;
  readonly namespaces: Pick<Store<KubeObject>, "list" | "get">;
  /**
   * The policy of a resource and its binding; undefined until they are listed. The kinds are followed from
   * the first call on.
   */
  readonly policyOf: (of: GroupResource) => StoredPolicy | undefined;
  readonly isWanted: (of: GroupResource) => boolean;
  /** True if a proxy may select by the labels of the resource. */
  readonly isReliedOn: (of: GroupResource) => boolean;
  /** True if the status of a family says that the resource is complete. */
  readonly wasComplete: (of: GroupResource) => boolean;
  readonly states: LabelStates;
  readonly enqueue: (of: GroupResource) => void;
  readonly perSecond: number;
  /** How long a policy must be in force until every API server is sure to know it. */
  readonly settleMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** What is known of a resource. */
interface Labelling {
  readonly resource: Resource;
  /** Why no policy can label the objects. */
  noPolicy: string | undefined;
  checkedRightsMs: number;
  tracker: LabelTracker | undefined;
  trackedFromMs: number;
  /** Undefined while the policy is not in force. */
  inForceFromMs: number | undefined;
  /** The last known state is Complete. */
  isComplete: boolean;
  /** Why the policy could not be written. */
  policyFailure: string | undefined;
  policyWrittenMs: number;
}

const LOOK_AGAIN_MS = 60_000;
const NO_RIGHTS_MS = 10_000;
const NOT_LISTED_MS = 100;
const POLICY_EVERY_MS = 1_000;
const RELIED_ON_MS = 500;

export function createLabelsReconciler(options: LabelsReconcilerOptions): Reconciler & { stop(): Promise<void> } {
  const { client, namespaces, states, clock, settleMs } = options;
  const known = new Map<string, Labelling>();
  const patcher = createPatcher(options);

  async function drop(of: GroupResource) {
    const labelling = known.get(resourceName(of));
    known.delete(resourceName(of));
    await labelling?.tracker?.stop();
    if (labelling !== undefined) patcher.forget(labelling.resource);
  }

  async function release(of: GroupResource, signal: AbortSignal): Promise<Result> {
    await drop(of);
    states.set(of, undefined);
    // Without the policy a writer could remove labels, and a watch that selects by them would show the object
    // as deleted.
    if (options.isReliedOn(of)) return { requeueAfterMs: RELIED_ON_MS };
    // Also what an earlier leader has left.
    if (await mayListPolicies(client, signal)) await removePolicy(client, of, signal);
    return {};
  }

  /** What is labelled, or else the reason why nothing is. */
  async function begin(of: GroupResource, signal: AbortSignal): Promise<Labelling | readonly [LabelReason, string]> {
    const name = resourceName(of);
    const before = known.get(name);
    const now = clock.monotonicMs();
    if (before !== undefined && now - before.checkedRightsMs < LOOK_AGAIN_MS) return before;
    const resource = await findResource(client, of, signal);
    if (resource === undefined) return ["NotServed", `the API server does not serve ${name}`];
    if (!resource.namespaced && !isNamespaces(of)) return ["ClusterScoped", "objects without a namespace get no labels"];
    const isServed = (await findResource(client, MUTATING_ADMISSION_POLICIES, signal))?.version === "v1";
    const missing = await missingRights(client, of, isServed, signal);
    if (missing !== undefined) return ["Forbidden", missing];
    const notServed = isServed ? undefined : "the API server does not serve MutatingAdmissionPolicy v1";
    const noPolicy = (await isAggregated(client, resource, signal)) ? "an aggregated API server serves the resource" : notServed;
    if (before !== undefined) return Object.assign(before, { noPolicy, checkedRightsMs: now });
    const labelling: Labelling = {
      ...{ resource, noPolicy, checkedRightsMs: now, trackedFromMs: now, inForceFromMs: undefined, tracker: undefined },
      ...{ isComplete: options.wasComplete(of), policyFailure: undefined, policyWrittenMs: Number.NEGATIVE_INFINITY },
    };
    known.set(name, labelling);
    return labelling;
  }

  /** Whether new objects get their labels; undefined until the policies are listed. */
  function lookAtPolicy(of: GroupResource, labelling: Labelling): boolean | undefined {
    if (labelling.noPolicy !== undefined) return false;
    const stored = options.policyOf(of);
    if (stored === undefined) return undefined;
    const inForce = isInForce(of, stored);
    // Of a policy that was in force under an earlier leader, the status knows whether that was long enough.
    const fromMs = labelling.isComplete ? Number.NEGATIVE_INFINITY : clock.monotonicMs();
    labelling.inForceFromMs = inForce ? (labelling.inForceFromMs ?? fromMs) : undefined;
    return inForce;
  }

  /** The watch shows what was written, and queues the resource again. */
  async function writePolicy(of: GroupResource, labelling: Labelling, signal: AbortSignal) {
    const stored = labelling.noPolicy === undefined ? options.policyOf(of) : undefined;
    const isRight = stored === undefined || isInForce(of, stored);
    if (isRight) labelling.policyFailure = undefined;
    // Another writer may restore its own version each time.
    if (isRight || clock.monotonicMs() - labelling.policyWrittenMs < POLICY_EVERY_MS) return;
    labelling.policyWrittenMs = clock.monotonicMs();
    try {
      await keepPolicy(client, of, stored, signal);
      labelling.policyFailure = undefined;
    } catch (error) {
      signal.throwIfAborted();
      labelling.policyFailure = errorMessage(error); // the status says it, and existing objects get their labels all the same
    }
  }

  function track(of: GroupResource, labelling: Labelling): LabelTracker {
    const { resource, inForceFromMs = Number.POSITIVE_INFINITY, tracker } = labelling;
    const now = clock.monotonicMs();
    const isSettled = now - inForceFromMs >= settleMs;
    const isFromBefore = labelling.trackedFromMs - inForceFromMs < settleMs;
    if (tracker !== undefined && !(isSettled && isFromBefore)) return tracker;
    void tracker?.stop();
    labelling.trackedFromMs = now;
    const onMissing = (object?: KubeObject) => {
      const home = namespaces.get(object?.metadata.namespace ?? object?.metadata.name ?? "");
      if (home === undefined || !isOptedOut(home)) options.enqueue(of);
    };
    labelling.tracker = startLabelTracker({ ...options, resource, onMissing });
    return labelling.tracker;
  }

  /** Says how far the resource is, and returns the objects without their labels. */
  function judge(of: GroupResource, labelling: Labelling, isInForce: boolean, tracker: LabelTracker): MissingLabels[] {
    const missing: MissingLabels[] = [];
    const optedOut = new Set(namespaces.list().flatMap((each) => (isOptedOut(each) ? [each.metadata.name ?? ""] : [])));
    const onMissing = (object: KubeObject, labels: Labels) => missing.push({ object, labels });
    const counts = countLabels(of, tracker.list(), (name) => optedOut.has(name), onMissing);
    const { noPolicy, policyFailure: failure, trackedFromMs, inForceFromMs = Number.POSITIVE_INFINITY } = labelling;
    const state = judgeLabels({
      ...counts,
      policy: noPolicy ?? { isInForce, failure, forMs: clock.monotonicMs() - inForceFromMs },
      isListed: tracker.hasSynced,
      isChecked: trackedFromMs - inForceFromMs >= settleMs,
      optedOut: isNamespaces(of) ? undefined : [...optedOut][0],
      failure: patcher.failureOf(labelling.resource, missing),
      settleMs,
    });
    // A new leader has nothing to say against the last status until its own list is there.
    if (!tracker.hasSynced && isInForce && labelling.isComplete) return [];
    const isComplete = state.reason === "Complete";
    // What a lagging API server, or another writer, has done once it may do again.
    if (labelling.isComplete && !isComplete && isInForce) labelling.inForceFromMs = clock.monotonicMs();
    labelling.isComplete = isComplete;
    states.set(of, state);
    return missing;
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
      const inForce = lookAtPolicy(of, labelling);
      if (inForce === undefined) return { requeueAfterMs: NOT_LISTED_MS };
      const missing = judge(of, labelling, inForce, track(of, labelling));
      await writePolicy(of, labelling, signal);
      const againMs = await patcher.patch(labelling.resource, missing, signal);
      const { trackedFromMs, inForceFromMs = Number.POSITIVE_INFINITY } = labelling;
      // Also if the time has come since the objects were looked at: then a list is due at once.
      const isChecked = trackedFromMs - inForceFromMs >= settleMs;
      const settledMs = isChecked ? LOOK_AGAIN_MS : inForceFromMs + settleMs - clock.monotonicMs();
      const policyMs = inForce || labelling.noPolicy !== undefined ? LOOK_AGAIN_MS : POLICY_EVERY_MS;
      return { requeueAfterMs: Math.max(1, Math.min(againMs ?? LOOK_AGAIN_MS, settledMs, policyMs)) };
    },
    async stop() {
      await Promise.all([...known.values()].map(({ tracker }) => tracker?.stop()));
      known.clear();
    },
  };
}
