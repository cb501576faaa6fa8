// The source kind VirtualApp: turns an object into an App. Invariant: each spec is checked once, even if many
// callers ask for its app.
import { annotationValue, stripsManagedFields } from "../../api/annotations.ts";
import { formatProblem } from "../../api/problems.ts";
import { VIRTUAL_APPS } from "../../api/resources.ts";
import { lockNameOf, type VirtualApp, type VirtualAppSpec, validateVirtualApp } from "../../api/virtual-app.ts";
import { remember } from "../../base/remember.ts";
import { type Labels, matchesSelector, matchesTerms } from "../../kube/label-selector.ts";
import type { CallerPolicy } from "../../mesh/ownership/snapshot.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import { type App, type AppSpec, type AppWords, frozenIn, type Source } from "../apps/app.ts";
import { clusterRulesIn } from "./cluster-owners.ts";
import { clusterRouteOf, routeOf } from "./route-rules.ts";
import { judgeEdit } from "./virtual-app-edit.ts";

const WORDS: AppWords = {
  kind: VIRTUAL_APPS.kind,
  plural: "VirtualApps",
  rules: "the route of the VirtualApp",
  lockField: "spec.configuration.controller.leaderElectionName",
  agentsField: "spec.route.subsetDefaultOnlyUserAgents",
  pausedField: "spec.route.paused",
  maxMovingField: "spec.route.maxMovingPercent",
};

export function createVirtualAppSource(validate = validateVirtualApp): Source<VirtualApp> {
  const checks = createChecks(validate);
  const appOf = remember((object: VirtualApp) => virtualAppOf(object, checks.of));
  return {
    resource: VIRTUAL_APPS,
    words: WORDS,
    controllerName: "virtual-app",
    readsNamespaceLabels: true,
    inputsOf: ({ metadata: { annotations } }) => [
      annotationValue(annotations, "strip-managed-fields"),
      annotationValue(annotations, "confirm-moves"),
    ],
    labelledBy: () => [],
    appNameOf: ({ metadata }) => metadata.name ?? "",
    appsOf: (objects) => objects.map(appOf),
    onUpdate: checks.keep,
    judgeEdit,
  };
}

type Checked = Pick<App, "spec" | "problems">;

/** Checks a spec once, and not again when only the status or the labels of the object change. */
function createChecks(validate: typeof validateVirtualApp) {
  const results = new WeakMap<VirtualApp, Checked>();
  const inputsOf = ({ metadata: { generation, annotations } }: VirtualApp) => JSON.stringify([generation, annotations]);
  return {
    of(object: VirtualApp): Checked {
      const result = results.get(object) ?? checkedSpec(validate(object));
      results.set(object, result);
      return result;
    },
    keep(before: VirtualApp, after: VirtualApp): void {
      const result = results.get(before);
      const isSame = after.metadata.generation !== undefined && inputsOf(before) === inputsOf(after);
      if (result !== undefined && isSame) results.set(after, result);
    },
  };
}

function checkedSpec(checked: ReturnType<typeof validateVirtualApp>): Checked {
  return checked.ok
    ? { spec: specOf(checked.value), problems: [] }
    : { spec: undefined, problems: checked.problems.map(formatProblem) };
}

/** A spec is checked when somebody asks for it: an app beyond its namespace's share never is. */
function virtualAppOf(object: VirtualApp, checkOf: (object: VirtualApp) => Checked): App {
  const { namespace = "", name = "" } = object.metadata;
  const { spec } = object;
  const selector = spec?.selector ?? {};
  return {
    ref: { kind: VIRTUAL_APPS.kind, namespace, name },
    words: WORDS,
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
    get spec() {
      return checkOf(object).spec;
    },
    get problems() {
      return checkOf(object).problems;
    },
  };
}

/** The object must be valid. */
export function specOf({
  spec,
  metadata: { name = "", annotations = {}, generation },
}: Pick<VirtualApp, "spec" | "metadata">): AppSpec {
  const isConfirmed = annotationValue(annotations, "confirm-moves") === String(generation);
  const clusterRules = clusterRulesIn(spec, name);
  return {
    subsets: subsetsOf(spec),
    lockName: lockNameOf(spec),
    callers: callersOf(spec, annotations),
    guard: spec.route?.guard === "Warn" ? "Warn" : undefined,
    frozen: frozenIn(spec.route?.frozen),
    webhook: spec.configuration?.webhook,
    isPaused: spec.route?.paused === true,
    maxMovingPercent: isConfirmed ? undefined : spec.route?.maxMovingPercent,
    retainsLosses: spec.route?.onLoss !== "InPlace",
    route: () => routeOf(spec),
    ...clusterRules,
    // Without a PlacementDecision that a rule names, nobody knows who owns the namespaces inside the cluster.
    clusterRoute: (cluster, _, chosen) =>
      clusterRules.missingDecision?.(cluster, chosen) === undefined ? clusterRouteOf(spec, cluster, chosen) : undefined,
  };
}

/** The spec and annotations must be valid. */
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

function subsetsOf(spec: VirtualAppSpec): string[] {
  return [DEFAULT_SUBSET, ...(spec.subsets ?? []).map(({ name }) => name)];
}
