// The source kind VirtualApp: turns an object into an App. Invariant: each spec is checked once, even if many callers ask for
// its app.
import { CONFIRM_MOVES, STRIP_MANAGED_FIELDS, stripsManagedFields } from "../../../api/annotations.ts";
import { formatProblem } from "../../../api/problems.ts";
import { VIRTUAL_APPS } from "../../../api/resources.ts";
import { lockNameOf, type VirtualApp, type VirtualAppSpec, validateVirtualApp } from "../../../api/virtual-app.ts";
import { BoundedMap } from "../../../base/bounded-map.ts";
import { type Labels, matchesSelector, matchesTerms } from "../../../kube/label-selector.ts";
import type { CallerPolicy } from "../../../route/snapshot.ts";
import { DEFAULT_SUBSET } from "../../../route/table.ts";
import type { App, AppSpec, Source } from "../app.ts";
import { routeOf } from "./route-rules.ts";
import { judgeEdit } from "./virtual-app-edit.ts";

export function createVirtualAppSource(): Source<VirtualApp> {
  const known = new WeakMap<VirtualApp, App>();
  const check = createCheck();
  const appOf = (object: VirtualApp): App => {
    const app = known.get(object) ?? virtualAppOf(object, check(object));
    known.set(object, app);
    return app;
  };
  return {
    resource: VIRTUAL_APPS,
    controllerName: "virtual-app",
    inputsOf: ({ metadata: { annotations = {} } }) => [annotations[STRIP_MANAGED_FIELDS], annotations[CONFIRM_MOVES]],
    labelledBy: () => [],
    appNameOf: ({ metadata }) => metadata.name ?? "",
    appsOf: (objects) => objects.map(appOf),
    judgeEdit,
  };
}

type Checked = ReturnType<typeof validateVirtualApp>;

/** Enough for every app of a cluster. */
const MAX_CHECKED = 10_000;

/** Checks a spec once, and not again when only the status or the labels of the object change. */
function createCheck(): (object: VirtualApp) => Checked {
  const last = new BoundedMap<string, { readonly inputs: string; readonly checked: Checked }>(MAX_CHECKED);
  return (object) => {
    const { uid, generation, annotations } = object.metadata;
    if (uid === undefined || generation === undefined) return validateVirtualApp(object);
    const inputs = JSON.stringify([generation, annotations]);
    const before = last.get(uid);
    const checked = before?.inputs === inputs ? before.checked : validateVirtualApp(object);
    last.set(uid, { inputs, checked });
    return checked;
  };
}

function virtualAppOf(object: VirtualApp, checked: Checked): App {
  const { namespace = "", name = "" } = object.metadata;
  const { spec } = object;
  const selector = spec?.selector ?? {};
  return {
    ref: { kind: VIRTUAL_APPS.kind, namespace, name },
    object,
    objects: [object],
    isEnding: object.metadata.deletionTimestamp !== undefined,
    leaving: [],
    pods: {
      name,
      selector,
      selects: (labels) => matchesSelector(selector, labels),
      subsetOf: (labels) => subsetOfPod(spec, labels),
    },
    spec: checked.ok ? specOf(checked.value) : undefined,
    problems: checked.ok ? [] : checked.problems.map(formatProblem),
  };
}

/** The object must be valid. */
export function specOf({ spec, metadata: { annotations = {}, generation } }: Pick<VirtualApp, "spec" | "metadata">): AppSpec {
  return {
    subsets: subsetsOf(spec),
    lockName: lockNameOf(spec),
    callers: callersOf(spec, annotations),
    guard: spec.route?.guard === "Warn" ? "Warn" : undefined,
    webhook: spec.configuration?.webhook,
    isPaused: spec.route?.paused === true,
    maxMovingPercent: annotations[CONFIRM_MOVES] === String(generation) ? undefined : spec.route?.maxMovingPercent,
    retainsLosses: spec.route?.onLoss !== "InPlace",
    route: () => routeOf(spec),
  };
}

/** The policy is the same for every subset. The spec and annotations must be valid. */
export function callersOf({ configuration, route }: VirtualAppSpec, annotations: Readonly<Record<string, string>>): CallerPolicy {
  return {
    userAgent: configuration?.restConfigOverrides?.userAgentOrPrefix ?? "",
    // Sorted and without duplicates, so that an edit of the order alone changes no snapshot.
    defaultOnlyUserAgents: [...new Set(route?.subsetDefaultOnlyUserAgents)].sort(),
    stripManagedFields: stripsManagedFields({ annotations }),
  };
}

/** The first subset in spec order whose labels the pod has; otherwise the default subset. */
export function subsetOfPod(spec: VirtualAppSpec | undefined, podLabels: Labels): string {
  const subset = spec?.subsets?.find(({ labels }) =>
    matchesTerms(
      Object.entries(labels).map(([key, value]) => ({ key, operator: "in", values: [value] })),
      podLabels,
    ),
  );
  return subset?.name ?? DEFAULT_SUBSET;
}

/** All subsets of an app, the default subset first. */
function subsetsOf(spec: VirtualAppSpec): string[] {
  return [DEFAULT_SUBSET, ...(spec.subsets ?? []).map(({ name }) => name)];
}
