// What the statuses of apps and policies say is wrong, and what somebody has left on.
import type { Condition } from "../../api/conditions.ts";
import { INJECTED_LABEL, PROXY_CONTAINER } from "../../api/injected-pod.ts";
import { type PolicyStatus, policyStatusSchema } from "../../api/policy-status.ts";
import { CIRCUIT_BREAKERS, FAULT_INJECTIONS, TRAFFIC_POLICIES } from "../../api/resources.ts";
import type { Resource } from "../../kube/client/resource.ts";
import { PODS, type Pod } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { age } from "../apps/ages.ts";
import { conditionOf, type FoundApp, pausedObjects } from "../apps/apps.ts";
import { readFields } from "../apps/read-status.ts";
import { counted, shellLine } from "../frame/output.ts";
import type { Check, Finding, Look, Severity } from "./check.ts";

/** A move that takes longer is worth a look. */
const LONG_MOVE_MS = 10 * 60_000;
/** Faults that somebody has forgotten. */
const LONG_FAULT_MS = 3_600_000;

/** How bad it is that a condition is False. Ready sums the others up. */
const SEVERITY_OF: Readonly<Record<string, Severity>> = {
  Ready: "error",
  Accepted: "error",
  LockPermitted: "error",
  InjectionReady: "error",
};

export const APPS: Check = {
  name: "apps",
  holds: "every app is ready, and no condition is False for long",
  async run(look) {
    return (await look.apps()).flatMap((app) => appFindings(app, look.nowMs));
  },
};

function appFindings(app: FoundApp, nowMs: number): Finding[] {
  const [object, next] = [titleOf(app), shellLine(["ctrlmesh", "status", app.name, "-n", app.namespace])];
  if (app.status === undefined) {
    const message = "has no status: no manager has looked at it";
    return [{ severity: "error", object, message, next, docs: "troubleshooting.md#ctrlmeshnoleader" }];
  }
  const unread = unreadFindings(object, app.unread, next, "reference/status.md");
  const bad = (app.status.conditions ?? []).filter((condition) => isBad(condition, nowMs));
  const others = bad.filter(({ type }) => type !== "Ready");
  const found = (others.length > 0 ? others : bad).map(({ type, reason, message }) => ({
    severity: SEVERITY_OF[type] ?? "warning",
    object,
    message: `${type} is False (${reason}): ${message}`,
    next,
    docs: `reference/status.md#${reason.toLowerCase()}`,
  }));
  return [...unread, ...(found.length > 0 ? found : unknownFindings(app, object, next))];
}

function unknownFindings(app: FoundApp, object: string, next: string): Finding[] {
  const ready = conditionOf(app, "Ready");
  if (ready?.status === "True" || ready?.status === "False") return [];
  const why = ready === undefined ? "there is no condition Ready" : `${ready.reason}: ${ready.message}`;
  const message = `it is not known whether it is ready (${why})`;
  return [{ severity: "warning", object, message, next, docs: "reference/status.md" }];
}

/** What is wrong there may be in a field that cannot be read. */
function unreadFindings(object: string, unread: readonly string[], next: string, docs: string): Finding[] {
  if (unread.length === 0) return [];
  const message = `its status cannot be read whole, since another version has written it: ${unread.join(", ")}`;
  return [{ severity: "warning", object, message, next, docs }];
}

function isBad({ type, status, lastTransitionTime }: Condition, nowMs: number): boolean {
  const isShortMove = type === "Converged" && nowMs - Date.parse(lastTransitionTime) < LONG_MOVE_MS;
  return status === "False" && !isShortMove;
}

export const LEFT_ON: Check = {
  name: "left-on",
  holds: "no app is paused, and every guard refuses writes to objects of other subsets",
  async run(look) {
    return (await look.apps()).flatMap((app): Finding[] => {
      const object = titleOf(app);
      const isWarn = app.objects.some(({ spec }) =>
        [spec, spec?.route].some((part) => (part as { guard?: string } | undefined)?.guard === "Warn"),
      );
      const resume = shellLine(["ctrlmesh", "resume", app.name, "-n", app.namespace]);
      return [
        ...(pausedObjects(app).length === 0
          ? []
          : [
              {
                severity: "warning" as const,
                object,
                message: "is paused: no namespace moves",
                next: resume,
                docs: "tasks/move-namespaces.md",
              },
            ]),
        ...(isWarn
          ? [
              {
                severity: "warning" as const,
                object,
                message: "guard is Warn: writes to objects of other subsets pass",
                docs: "reference/clients.md#writes-to-objects-of-other-subsets",
              },
            ]
          : []),
      ];
    });
  },
};

export const SIDECARS: Check = {
  name: "sidecars",
  holds: "all sidecars have one image",
  async run({ cluster }) {
    const pods = await cluster.list(PODS, undefined, INJECTED_LABEL);
    const byImage = Map.groupBy(pods, imageOf);
    if (byImage.size <= 1) return [];
    const texts = [...byImage].map(([image, of]) => `${counted(of.length, "pod")} with ${image}`);
    const message = `${texts.join(", ")}: a pod gets the present sidecar when it is restarted`;
    return [{ severity: "warning", message, next: "ctrlmesh version", docs: "tasks/upgrade.md#roll-the-sidecars" }];
  },
};

function imageOf({ spec }: Pod): string {
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  return containers.find(({ name }) => name === PROXY_CONTAINER)?.image ?? "no sidecar";
}

interface PolicyObject extends KubeObject {
  readonly status?: unknown;
}

/** What the checks read. */
const POLICY_FIELDS = policyStatusSchema.pick({ conditions: true, targets: true, mode: true }).shape;

const POLICY_RESOURCES = [TRAFFIC_POLICIES, CIRCUIT_BREAKERS, FAULT_INJECTIONS] as readonly Resource<PolicyObject>[];
const ALERTS = "tasks/limit-traffic.md#alerts";

export const POLICIES: Check = {
  name: "policies",
  holds: "every policy is accepted and enforced",
  run: (look) =>
    eachPolicy(look, POLICY_RESOURCES, (object, { conditions = [] }, next, unread) => [
      ...unreadFindings(object, unread, next, ALERTS),
      ...conditions
        .filter(({ type, status }) => status === "False" && (type === "Accepted" || type === "Synced"))
        .map(({ type, reason, message }) => ({
          severity: type === "Accepted" ? ("error" as const) : ("warning" as const),
          object,
          message: `${type} is False (${reason}): ${message}`,
          next,
          docs: ALERTS,
        })),
    ]),
};

export const BREAKERS: Check = {
  name: "breakers",
  holds: "no breaker is open",
  run: (look) =>
    eachPolicy(look, [CIRCUIT_BREAKERS] as readonly Resource<PolicyObject>[], (object, { targets }, next) => {
      const { opened = 0 } = targets ?? {};
      if (opened === 0) return [];
      return [{ severity: "warning", object, message: `its breaker is open in ${counted(opened, "pod")}`, next, docs: ALERTS }];
    }),
};

export const FAULTS: Check = {
  name: "faults",
  holds: "no fault has been injected for an hour or more",
  run: (look) =>
    eachPolicy(look, [FAULT_INJECTIONS] as readonly Resource<PolicyObject>[], (object, { conditions = [], mode }, next) => {
      const active = conditions.find(({ type, status }) => type === "Active" && status === "True");
      if (active === undefined || mode !== "Enforce") return [];
      if (look.nowMs - Date.parse(active.lastTransitionTime) < LONG_FAULT_MS) return [];
      const message = `has injected faults for ${age(active.lastTransitionTime, look.nowMs)}: ${active.message}`;
      return [{ severity: "warning", object, message, next, docs: "reference/faultinjection.md" }];
    }),
};

/** @param next the command that shows the object */
async function eachPolicy(
  { cluster, namespace }: Look,
  resources: readonly Resource<PolicyObject>[],
  findingsOf: (object: string, status: PolicyStatus, next: string, unread: readonly string[]) => readonly Finding[],
): Promise<Finding[]> {
  const found = await Promise.all(
    resources.map(async (resource) => {
      const policies = await cluster.list(resource, namespace);
      return policies.flatMap(({ metadata, status }) => {
        const next = `kubectl describe ${resource.resource}.${resource.group} ${metadata.name} -n ${metadata.namespace}`;
        const read = readFields(POLICY_FIELDS, status);
        return findingsOf(`${resource.kind} ${metadata.namespace}/${metadata.name}`, read.status ?? {}, next, read.unread);
      });
    }),
  );
  return found.flat();
}

function titleOf({ kind, namespace, name }: FoundApp): string {
  return `${kind.resource.kind} ${namespace}/${name}`;
}
