// The source kind VirtualApp: object -> App. Invariant: one object is read once, however many ask for its app.
import { STRIP_MANAGED_FIELDS } from "../../../api/annotations.ts";
import { formatProblem } from "../../../api/problems.ts";
import { VIRTUAL_APPS } from "../../../api/resources.ts";
import { lockNameOf, type VirtualApp, validateVirtualApp } from "../../../api/virtual-app.ts";
import type { App, AppSpec, Source } from "../app.ts";
import { callersOf } from "./callers.ts";
import { compileRoute } from "./compile-route.ts";
import { notSupported } from "./not-supported.ts";
import { subsetOfPod, subsetsOf } from "./subsets.ts";
import { judgeEdit } from "./virtual-app-edit.ts";

export function createVirtualAppSource(): Source<VirtualApp> {
  const known = new WeakMap<VirtualApp, App>();
  return {
    resource: VIRTUAL_APPS,
    controllerName: "virtual-app",
    annotations: [STRIP_MANAGED_FIELDS],
    appOf(object) {
      const app = known.get(object) ?? virtualAppOf(object);
      known.set(object, app);
      return app;
    },
    judgeEdit,
  };
}

function virtualAppOf(object: VirtualApp): App {
  const { namespace = "", name = "" } = object.metadata;
  const { spec } = object;
  const checked = validateVirtualApp(object);
  return {
    ref: { kind: VIRTUAL_APPS.kind, namespace, name },
    object,
    pods: { name, selector: spec?.selector ?? {}, subsetOf: (labels) => subsetOfPod(spec, labels) },
    spec: checked.ok ? specOf(checked.value) : undefined,
    problems: checked.ok ? [] : checked.problems.map(formatProblem),
  };
}

/** Only a valid object. */
export function specOf({ spec, metadata: { annotations = {} } }: Pick<VirtualApp, "spec" | "metadata">): AppSpec {
  return {
    subsets: subsetsOf(spec),
    lockName: lockNameOf(spec),
    callers: callersOf(spec, annotations),
    isPaused: spec.route?.paused === true,
    retainsLosses: spec.route?.onLoss !== "InPlace",
    notSupported: notSupported(spec),
    compile: (namespaces) => compileRoute(spec, namespaces),
  };
}
