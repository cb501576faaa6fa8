// What the statuses of policies say is wrong, and which breakers and faults are on.
import { type PolicyStatus, policyStatusSchema } from "../../api/policy-status.ts";
import { CIRCUIT_BREAKERS, FAULT_INJECTIONS, TRAFFIC_POLICIES } from "../../api/resources.ts";
import type { Resource } from "../../kube/client/resource.ts";
import type { KubeObject } from "../../kube/types.ts";
import { age } from "../apps/ages.ts";
import { readFields } from "../apps/read-status.ts";
import { counted, shellLine } from "../frame/output.ts";
import { type Check, type Finding, foundError, foundWarning, type Look, unreadFindings } from "./check.ts";

/** Faults that somebody has forgotten. */
const LONG_FAULT_MS = 3_600_000;

interface PolicyObject extends KubeObject {
  readonly status?: unknown;
}

/** What the checks read. */
const POLICY_FIELDS = policyStatusSchema.pick({ conditions: true, targets: true, mode: true }).shape;

const POLICY_RESOURCES = [TRAFFIC_POLICIES, CIRCUIT_BREAKERS, FAULT_INJECTIONS];
const ALERTS = "tasks/limit-traffic.md#alerts";

export const POLICIES: Check = {
  name: "policies",
  holds: "every policy is accepted and enforced",
  run: (look) =>
    eachPolicy(look, POLICY_RESOURCES, ({ object, status: { conditions = [] }, next, unread }) => [
      ...unreadFindings(unread, ALERTS, { object, next }),
      ...conditions
        .filter(({ type, status }) => status === "False" && (type === "Accepted" || type === "Synced"))
        .map(({ type, reason, message }) => {
          const found = type === "Accepted" ? foundError : foundWarning;
          return found(`${type} is False (${reason}): ${message}`, ALERTS, { object, next });
        }),
    ]),
};

export const BREAKERS: Check = {
  name: "breakers",
  holds: "no breaker is open",
  run: (look) =>
    eachPolicy(look, [CIRCUIT_BREAKERS], ({ object, metadata, status: { targets, conditions = [] } }) => {
      const { opened = 0 } = targets ?? {};
      if (opened === 0) return [];
      const cause = conditions.find(({ type, status }) => type === "Open" && status === "True")?.message;
      const message = `its breaker is open in ${counted(opened, "pod")}${cause === undefined ? "" : `: ${cause}`}; once that is mended, close it`;
      const next = shellLine(["ctrlmesh", "recover", metadata.name ?? "", "-n", metadata.namespace ?? ""]);
      return [foundWarning(message, ALERTS, { object, next })];
    }),
};

export const FAULTS: Check = {
  name: "faults",
  holds: "no fault has been injected for an hour or more",
  run: (look) =>
    eachPolicy(look, [FAULT_INJECTIONS], ({ object, status: { conditions = [], mode }, next }) => {
      const active = conditions.find(({ type, status }) => type === "Active" && status === "True");
      if (active === undefined || mode !== "Enforce") return [];
      if (look.nowMs - Date.parse(active.lastTransitionTime) < LONG_FAULT_MS) return [];
      const message = `has injected faults for ${age(active.lastTransitionTime, look.nowMs)}: ${active.message}`;
      return [foundWarning(message, "reference/faultinjection.md", { object, next })];
    }),
};

interface FoundPolicy {
  /** For example "CircuitBreaker ops/guard". */
  readonly object: string;
  readonly metadata: KubeObject["metadata"];
  readonly status: PolicyStatus;
  readonly unread: readonly string[];
  /** The command that shows the object. */
  readonly next: string;
}

async function eachPolicy(
  { cluster, namespace }: Look,
  resources: readonly Resource<KubeObject>[],
  findingsOf: (policy: FoundPolicy) => readonly Finding[],
): Promise<Finding[]> {
  const found = await Promise.all(
    resources.map(async (resource) => {
      const policies = (await cluster.list(resource, namespace)) as readonly PolicyObject[];
      return policies.flatMap(({ metadata, status }) => {
        const { status: read = {}, unread } = readFields(POLICY_FIELDS, status);
        const object = `${resource.kind} ${metadata.namespace}/${metadata.name}`;
        const next = `kubectl describe ${resource.resource}.${resource.group} ${metadata.name} -n ${metadata.namespace}`;
        return findingsOf({ object, metadata, status: read, unread, next });
      });
    }),
  );
  return found.flat();
}
