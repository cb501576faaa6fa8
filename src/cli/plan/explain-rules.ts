// The rules by which each VirtualApp gives a namespace its owner, as lines below the answers of the sidecars.
import { VIRTUAL_APPS } from "../../api/resources.ts";
import { validateVirtualApp } from "../../api/virtual-app.ts";
import { errorMessage } from "../../base/errors.ts";
import { NAMESPACES } from "../../kube/client/resources.ts";
import { namespaceFacts } from "../../manager/apps/compile/route-spec.ts";
import { explainRules, type RuleAnswer } from "../../manager/virtual-app/explain-rules.ts";
import type { FoundApp } from "../apps/apps.ts";
import type { Cluster } from "../frame/cluster.ts";
import { columns, type Output } from "../frame/output.ts";

export interface ExplainedApp {
  /** NAMESPACE/NAME */
  readonly app: string;
  readonly rules: readonly RuleAnswer[];
}

/** None if the namespace cannot be read. Families are left out: their shards divide namespaces by hash or placement. */
export async function explainedApps(
  cluster: Cluster,
  apps: readonly FoundApp[],
  namespace: string,
  output: Output,
): Promise<ExplainedApp[]> {
  const object = await cluster.get(NAMESPACES, { name: namespace }).catch((error: unknown) => {
    output.hint(`which rules match is not known: ${errorMessage(error)}`);
  });
  if (object === undefined) return [];
  return apps.flatMap((app) => {
    if (app.kind.resource.kind !== VIRTUAL_APPS.kind) return [];
    const checked = validateVirtualApp(app.object);
    if (!checked.ok) return [];
    return [{ app: `${app.namespace}/${app.name}`, rules: explainRules(checked.value.spec, namespaceFacts(object)) }];
  });
}

/** @param of the place whose labels decide */
export function explainedLines({ app, rules }: ExplainedApp, of: "namespace" | "MeshCluster"): string[] {
  const head = ["ORDER", "RULE", "SUBSET", "MATCH", "WHY"];
  const rows = rules.map(({ rule, subset, match, why }, at) => [String(at + 1), rule, subset ?? "-", match, why]);
  return ["", `by the spec of ${app} and the labels of the ${of} as they are now:`, ...columns([head, ...rows], "  ")];
}
