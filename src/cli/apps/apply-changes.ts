// Changes objects of the cluster, and prints what kubectl would do. Invariant: a dry run changes nothing, and shows no command
// that would.
import type { ObjectRef, Resource } from "../../kube/client/resource.ts";
import { type Cluster, FIELD_MANAGER } from "../frame/cluster.ts";
import type { Call } from "../frame/command.ts";
import { accessFlags, clusterOptions } from "../frame/flags.ts";
import { shellLine } from "../frame/output.ts";

export interface ObjectChange {
  readonly resource: Resource;
  readonly ref: ObjectRef;
  /** A merge patch. */
  readonly patch: object;
  /** For example "paused". */
  readonly done: string;
  /** What does the same, without the flags for access. */
  readonly kubectl: readonly string[];
  /** Absent: this kubectl command has no dry run. */
  readonly dryRunFlag?: string;
}

export async function applyChanges({ flags, output }: Call, cluster: Cluster, changes: readonly ObjectChange[]): Promise<void> {
  const isDry = flags.isSet("dry-run");
  const access = accessFlags(clusterOptions(flags));
  const items: object[] = [];
  const lines: string[] = [];
  for (const { resource, ref, patch, done, kubectl: words, dryRunFlag } of changes) {
    await cluster.patch(resource, ref, patch, isDry);
    const isShown = !isDry || dryRunFlag !== undefined;
    const dry = isDry && dryRunFlag !== undefined ? [dryRunFlag] : [];
    const kubectl = shellLine(["kubectl", ...words, `--field-manager=${FIELD_MANAGER}`, ...dry, ...access]);
    items.push({ kind: resource.kind, ...ref, change: done, dryRun: isDry, kubectl: isShown ? kubectl : undefined });
    lines.push(`${resource.kind} ${ref.namespace}/${ref.name} ${done}${isDry ? " (dry run: nothing was changed)" : ""}`);
    if (isShown) output.hint(`with kubectl: ${kubectl}`);
  }
  output.data("ChangeList", { items }, lines);
}

/** The change as `kubectl patch`. */
export function patchOf(resource: Resource, ref: ObjectRef, patch: object, done: string): ObjectChange {
  const { namespace = "", name } = ref;
  const kubectl = [
    "patch",
    `${resource.resource}.${resource.group}`,
    name,
    "-n",
    namespace,
    "--type=merge",
    "-p",
    JSON.stringify(patch),
  ];
  return { resource, ref, patch, done, kubectl, dryRunFlag: "--dry-run=server" };
}
