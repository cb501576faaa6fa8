// Coordinated leader election (https://kep.k8s.io/4355): pods create LeaseCandidates, which name the lock in
// their spec, and the control plane creates the lock for one of them. It knows the lock only by the name that
// it has upstream. Invariant: no candidate of a subset whose lock is renamed stands for another subset's lock.
import { StatusError } from "../../../kube/status.ts";
import { lockNameFor } from "../../../mesh/ownership/lock.ts";
import type { Snapshot } from "../../../mesh/ownership/snapshot.ts";
import { noteDecision, type ResourceCall } from "../../call/call.ts";

const WRITES: ReadonlySet<string> = new Set(["create", "update", "patch"]);

/** @throws StatusError Forbidden for a candidate that the control plane would elect for the wrong lock */
export function checkCandidate(call: ResourceCall, snapshot: Snapshot): void {
  const { info, record } = call;
  const { lockName, subset, podNamespace } = snapshot;
  const isCandidate = info.group === "coordination.k8s.io" && info.resource === "leasecandidates";
  if (!isCandidate || info.namespace !== podNamespace || !WRITES.has(info.verb)) return;
  const name = lockNameFor(lockName, subset);
  if (lockName === "" || name === lockName) return;
  noteDecision(record, "refused", "other-subset-lock");
  throw new StatusError(
    "Forbidden",
    `ctrlmesh: ${info.verb} leasecandidates: coordinated leader election cannot lead this subset, whose lock is "${name}" upstream; elect without LeaseCandidates`,
  );
}
