// The pods that policies are for, and the policies of each pod of a namespace. Pure. Invariants: equal objects
// make equal sets in every manager, so that a change of the manager changes no proxy; doubt about one object
// holds up no other one: the proxy keeps the rules of this object alone (`keeps`).

import { carriesProxy, hasEgress, INJECTED_LABEL } from "../../api/injected-pod.ts";
import type { Pod } from "../../kube/client/resources.ts";
import { policiesDigest } from "../../mesh/contract/policy-type.ts";
import { type FactsOf, podKey } from "../../mesh/handover/proxy-facts.ts";
import { NO_POLICIES, type PolicySet } from "../../policy/policy.ts";
import type { Apps } from "../apps/app.ts";
import { hasEnded, mayProxyHaveRun } from "../facts/app-pods.ts";
import { isDoubtful, type KnownPolicy } from "./accepted-policies.ts";
import { addSizes, fits, NO_SIZE, type PolicySize, type TargetPod } from "./policy-kind.ts";

/** Undefined if the pod has no proxy or has ended. Users may remove the labels that the injection wrote. */
export function targetPod(pod: Pod, apps: Pick<Apps, "get">, factsOf: FactsOf): TargetPod | undefined {
  const { namespace = "", name = "", uid = "", labels = {} } = pod.metadata;
  const injectedApp = labels[INJECTED_LABEL];
  if (hasEnded(pod) || (injectedApp === undefined && !carriesProxy(pod))) return undefined;
  // Without the label, the routes that the proxy enforces name its app.
  const app = injectedApp ?? factsOf(podKey({ namespace, name }))?.acknowledged?.app.name ?? "";
  const subset = apps.get(app, namespace)?.pods.subsetOf(labels);
  const ip = pod.status?.podIP ?? "";
  return { namespace, name, uid, labels, ip, app, subset, hasEgress: hasEgress(pod), hasRun: mayProxyHaveRun(pod) };
}

export interface PodPolicies {
  readonly pod: TargetPod;
  readonly policies: PolicySet;
  readonly digest: string;
  /** The objects whose rules the proxy keeps as it has them: why, in words, by uid. */
  readonly keeps: ReadonlyMap<string, string>;
  /** The uids of objects that do not fit beside older ones. */
  readonly leftOut: ReadonlySet<string>;
}

type Combined = Omit<PodPolicies, "pod">;

// The bound of all different sets of a namespace: four times its share (POLICIES_SHARE). The manager encodes,
// hashes and keeps each set. For a thousand pods with different sets, this took longer than its lease.
const MAX_SETS_BYTES = 16 * 1024 * 1024;

/** Pods with equal policies share a set. The oldest pods come first: one beyond the bound keeps what it has. */
export function podPolicies(policies: readonly KnownPolicy[]): (pod: TargetPod) => PodPolicies {
  const sorted = [...policies].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const doubtful = sorted.filter(isDoubtful).map((each) => [uidOf(each), doubtAbout(each)] as const);
  const shared = new Map<string, Combined>();
  let bytes = 0;
  const combine = (ofPod: readonly KnownPolicy[], keeps: ReadonlyMap<string, string>): Combined | undefined => {
    const { leftOut, size } = leaveOut(ofPod);
    if (bytes + size.bytes > MAX_SETS_BYTES) return undefined;
    bytes += size.bytes;
    const rules = ofPod.flatMap((each) => (leftOut.has(uidOf(each)) ? [] : (each.policy?.rules ?? [])));
    const set: PolicySet = {
      limits: rules.flatMap(({ limits }) => limits),
      faults: rules.flatMap(({ faults }) => faults),
      egress: rules.flatMap(({ egress }) => egress),
    };
    return { policies: set, keeps, digest: policiesDigest({ ...set, keep: [...keeps.keys()] }), leftOut };
  };
  return (pod) => {
    const judged = sorted.map((each) => ({ each, isFor: each.policy?.isFor(pod) }));
    const ofPod = judged.flatMap(({ each, isFor }) => (isFor === true ? [each] : []));
    const unsure = judged.flatMap(({ each, isFor }) => (isFor === "unsure" ? [each] : []));
    const keeps = new Map([...doubtful, ...unsure.map((each) => [uidOf(each), doubtAboutApp(pod)] as const)]);
    const key = JSON.stringify([ofPod.map(nameOf), [...keeps]]);
    const combined = shared.get(key) ?? combine(ofPod, keeps) ?? keepAll(ofPod, keeps);
    if (combined.policies !== NO_POLICIES) shared.set(key, combined);
    return { pod, ...combined };
  };
}

/** The rules of objects that are gone end also in a pod whose set is beyond the bound. */
function keepAll(ofPod: readonly KnownPolicy[], doubtful: ReadonlyMap<string, string>): Combined {
  const leftOut = new Set(ofPod.map(uidOf));
  const keeps = new Map([...doubtful, ...[...leftOut].map((uid) => [uid, NO_ROOM] as const)]);
  return { policies: NO_POLICIES, keeps, digest: policiesDigest({ ...NO_POLICIES, keep: [...keeps.keys()] }), leftOut };
}

const NO_ROOM = "all different sets of the namespace are too large together";

function doubtAbout({ kind, object }: KnownPolicy): string {
  return `${kind.resource.kind} ${object.metadata.name ?? ""} is not valid, and this manager has not seen its earlier spec`;
}

function doubtAboutApp({ app }: TargetPod): string {
  return app === "" ? "the app of the pod is not known" : `the app ${app} does not exist, so the subset of the pod is not known`;
}

function nameOf({ kind, object }: KnownPolicy): string {
  return `${kind.resource.kind}/${object.metadata.name ?? ""}`;
}

function uidOf({ object }: KnownPolicy): string {
  return object.metadata.uid ?? "";
}

/** A proxy refuses a set above the bound of its message as a whole, so the oldest objects come first. */
function leaveOut(ofPod: readonly KnownPolicy[]): { readonly leftOut: ReadonlySet<string>; readonly size: PolicySize } {
  const leftOut = new Set<string>();
  let size = NO_SIZE;
  const createdAt = ({ object }: KnownPolicy) => Date.parse(object.metadata.creationTimestamp ?? "") || 0;
  for (const each of [...ofPod].sort((a, b) => createdAt(a) - createdAt(b))) {
    const next = addSizes(size, each.size);
    if (fits(next)) size = next;
    else leftOut.add(uidOf(each));
  }
  return { leftOut, size };
}
