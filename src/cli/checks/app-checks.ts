// What the statuses of apps say is wrong, and what somebody has left on.
import type { Condition } from "../../api/conditions.ts";
import { INJECTED_LABEL, PROXY_CONTAINER } from "../../api/injected-pod.ts";
import { PODS } from "../../kube/client/resources.ts";
import { frozenText } from "../../mesh/ownership/frozen-places.ts";
import { conditionOf, type FoundApp, frozenIn, mayBeUnheld, NOT_FROZEN, pausedObjects } from "../apps/apps.ts";
import { imageOf } from "../apps/pod-image.ts";
import { counted, shellLine } from "../frame/output.ts";
import { type Check, type Finding, foundError, foundWarning, type Severity, unreadFindings } from "./check.ts";

/** A move that takes longer is worth a look. */
const LONG_MOVE_MS = 10 * 60_000;

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
    return [foundError("has no status: no manager has looked at it", "troubleshooting.md#ctrlmeshnoleader", { object, next })];
  }
  const unread = unreadFindings(app.unread, "reference/status.md", { object, next });
  const bad = (app.status.conditions ?? []).filter((condition) => isBad(condition, nowMs));
  // Two writers are the worst that can be, and only Ready says so.
  const others = bad.filter(({ type, reason }) => type !== "Ready" || reason === "OwnershipConflict");
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
  return [foundWarning(message, "reference/status.md", { object, next })];
}

function isBad({ type, status, reason, lastTransitionTime }: Condition, nowMs: number): boolean {
  const isMove = type === "Converged" && reason !== NOT_FROZEN;
  const isShortMove = isMove && nowMs - Date.parse(lastTransitionTime) < LONG_MOVE_MS;
  return status === "False" && !isShortMove;
}

export const LEFT_ON: Check = {
  name: "left-on",
  holds: "no app is paused, no namespace frozen, and every guard refuses writes to objects of other subsets",
  async run(look) {
    return (await look.apps()).flatMap((app) => [...pauseFindings(app), ...frozenFindings(app), ...guardFindings(app)]);
  },
};

function pauseFindings(app: FoundApp): Finding[] {
  if (pausedObjects(app).length === 0) return [];
  const next = shellLine(["ctrlmesh", "resume", app.name, "-n", app.namespace]);
  return [foundWarning("is paused: no namespace moves", "tasks/move-namespaces.md", { object: titleOf(app), next })];
}

function frozenFindings(app: FoundApp): Finding[] {
  return frozenIn(app).map((frozen) => {
    const { cluster, namespace, reason } = frozen;
    const inside = cluster === undefined ? [] : ["--cluster", cluster];
    const next = shellLine(["ctrlmesh", "thaw", namespace, "--app", app.name, "-n", app.namespace, ...inside]);
    const state = mayBeUnheld(app, frozen)
      ? "is frozen in its spec, and its operator may write there all the same (NotFrozen)"
      : "is frozen, so its operator writes nothing there";
    const message = `${frozenText(frozen)} ${state}: ${reason}`;
    return foundWarning(message, "tasks/freeze-a-namespace.md", { object: titleOf(app), next });
  });
}

function guardFindings(app: FoundApp): Finding[] {
  const isWarn = app.objects.some(({ spec }) => app.kind.optionsIn(spec ?? {}).guard === "Warn");
  if (!isWarn) return [];
  const docs = "reference/clients.md#writes-to-objects-of-other-subsets";
  return [foundWarning("guard is Warn: writes to objects of other subsets pass", docs, { object: titleOf(app) })];
}

export const SIDECARS: Check = {
  name: "sidecars",
  holds: "all sidecars have one image",
  async run({ cluster }) {
    const pods = await cluster.list(PODS, undefined, INJECTED_LABEL);
    const byImage = Map.groupBy(pods, (pod) => imageOf(pod, PROXY_CONTAINER) ?? "no sidecar");
    if (byImage.size <= 1) return [];
    const texts = [...byImage].map(([image, of]) => `${counted(of.length, "pod")} with ${image}`);
    const message = `${texts.join(", ")}: a pod gets the present sidecar when it is restarted`;
    return [foundWarning(message, "tasks/upgrade.md#roll-the-sidecars", { next: "ctrlmesh version" })];
  },
};

function titleOf({ kind, namespace, name }: FoundApp): string {
  return `${kind.resource.kind} ${namespace}/${name}`;
}
