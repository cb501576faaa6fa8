// Namespaces as a kind that the validating webhook looks at: an edit of labels that moves the namespace is allowed with a warning. It never refuses.
// Opt-in, since the API server then asks the manager about edits of namespaces.
import { fieldAt } from "../../api/rule.ts";
import { plainText } from "../../base/plain-text.ts";
import { NAMESPACES } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { type Owner, ownerText } from "../../route/table.ts";
import { isDeepEqual } from "../../runtime/deep-equal.ts";
import type { App, AppSpec, Apps } from "../sources/app.ts";
import { comparedOwners, isSameOwner } from "../sources/namespace-owners.ts";
import type { CheckedKind } from "./validate-webhook.ts";

/** Clients show only some. */
const MAX_WARNINGS = 8;
const MAX_NAME = 253;

export function checkedNamespaces(apps: Pick<Apps, "list">): CheckedKind {
  return {
    resource: NAMESPACES,
    judgeEdit(before, after) {
      const warnings: string[] = [];
      // Only calls of the API server are filtered by the match condition, and any pod may call this port.
      if (before === undefined || isDeepEqual(labelsOf(before), labelsOf(after))) return { problems: [], warnings };
      for (const app of apps.list()) {
        warnings.push(...moveWarning(app, before as KubeObject, after as KubeObject));
        if (warnings.length >= MAX_WARNINGS) break;
      }
      return { problems: [], warnings };
    },
  };
}

function labelsOf(object: unknown): unknown {
  return fieldAt(object, "metadata", "labels") ?? {};
}

function moveWarning({ ref, spec }: App, before: KubeObject, after: KubeObject): string[] {
  if (spec === undefined || spec.isPaused) return [];
  const { name = "" } = after.metadata;
  const [old, next] = comparedOwners([tableOf(spec, before), tableOf(spec, after)]).map((ownersIn) => ownersIn(name));
  const at = old?.findIndex((owner, index) => !isSameOwner(owner, next?.[index])) ?? -1;
  const [from, to] = [old?.[at], next?.[at]] as [Owner | undefined, Owner | undefined];
  if (from === undefined || to === undefined) return [];
  const app = `${ref.kind} ${ref.namespace}/${ref.name}`;
  return [`namespace ${JSON.stringify(plainText(name, MAX_NAME))} moves from ${ownerText(from)} to ${ownerText(to)} of ${app}`];
}

/** The route of this one namespace. */
function tableOf(spec: AppSpec, { metadata: { name = "", labels = {} } }: KubeObject) {
  return spec.compile([{ name, labels }]);
}
