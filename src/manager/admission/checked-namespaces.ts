// Namespaces as a kind that the validating webhook looks at: an edit of labels that moves the namespace is allowed with a warning. It never refuses.
// Opt-in, since the API server then asks the manager about edits of namespaces, and whoever can ask learns which apps divide them.
import { fieldAt } from "../../api/rule.ts";
import type { Clock } from "../../base/clock.ts";
import { plainText } from "../../base/plain-text.ts";
import { NAMESPACES } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { type Owner, ownerText } from "../../route/table.ts";
import { isDeepEqual } from "../../runtime/deep-equal.ts";
import type { App, Apps } from "../sources/app.ts";
import type { Compile } from "../sources/compile/compiler.ts";
import { namespaceFacts } from "../sources/compile/route-spec.ts";
import { comparedOwners, isSameOwner } from "../sources/namespace-owners.ts";
import type { CheckedKind } from "./validate-webhook.ts";

/** Clients show only some. */
const MAX_WARNINGS = 8;
const MAX_NAME = 253;
/** For one app and its one namespace: far more than any ordinary spec takes. */
const LIMIT_MS = 50;
/** For all apps: the API server waits for the answer. */
const TOTAL_MS = 1_000;

export function checkedNamespaces(apps: Pick<Apps, "list">, compile: Compile, clock: Pick<Clock, "monotonicMs">): CheckedKind {
  return {
    resource: NAMESPACES,
    async judgeEdit(before, after) {
      const warnings: string[] = [];
      // Only calls of the API server are filtered by the match condition, and any pod may call this port.
      if (before === undefined || isDeepEqual(labelsOf(before), labelsOf(after))) return { problems: [], warnings };
      const endMs = clock.monotonicMs() + TOTAL_MS;
      for (const app of apps.list()) {
        warnings.push(...(await moveWarning(app, before as KubeObject, after as KubeObject, compile)));
        if (warnings.length >= MAX_WARNINGS || clock.monotonicMs() >= endMs) break;
      }
      return { problems: [], warnings };
    },
  };
}

function labelsOf(object: unknown): unknown {
  return fieldAt(object, "metadata", "labels") ?? {};
}

async function moveWarning({ ref, spec }: App, before: KubeObject, after: KubeObject, compile: Compile): Promise<string[]> {
  if (spec === undefined || spec.isPaused) return [];
  const { name = "" } = after.metadata;
  const route = spec.route();
  const tables = await Promise.all([before, after].map((object) => compile(route, [namespaceFacts(object)], LIMIT_MS)));
  const compared = comparedOwners(tables.filter((table) => table !== undefined));
  if (compared.length < tables.length) return [];
  const [old, next] = compared.map((ownersIn) => ownersIn(name));
  const at = old?.findIndex((owner, index) => !isSameOwner(owner, next?.[index])) ?? -1;
  const [from, to] = [old?.[at], next?.[at]] as [Owner | undefined, Owner | undefined];
  if (from === undefined || to === undefined) return [];
  const app = `${ref.kind} ${ref.namespace}/${ref.name}`;
  return [`namespace ${JSON.stringify(plainText(name, MAX_NAME))} moves from ${ownerText(from)} to ${ownerText(to)} of ${app}`];
}
