// What `kubectl apply` makes of the files, as the API server says it: a field that a file does not name, and that somebody else has set,
// stays. An object is applied as it was applied last, since only its applier can remove a field. Invariant: an object that the API server cannot be asked about is planned as its file has it, and is named.
import { errorMessage, isMeshError } from "../../base/errors.ts";
import type { KubeObject } from "../../kube/types.ts";
import { titleOf } from "../apps/read-objects.ts";
import type { Cluster } from "../frame/cluster.ts";
import { serverSideApplierOf } from "./last-applier.ts";
import type { Edits, StoredObjects } from "./plan-edits.ts";

/** Each is a process of kubectl. */
const AT_ONCE = 8;

interface AppliedEdits {
  readonly edits: Edits;
  /** Objects that are as their files have them, each with the reason. */
  readonly asInFile: readonly string[];
}

export async function appliedEdits(cluster: Cluster, stored: StoredObjects, edits: Edits): Promise<AppliedEdits> {
  const files = [...edits.namespaces, ...edits.clusters, ...edits.decisions, ...[...edits.objects.values()].flat()];
  const before = [...stored.namespaces, ...stored.clusters, ...stored.decisions, ...[...stored.objects.values()].flat()];
  const applied = new Map<KubeObject, KubeObject>();
  const asInFile: string[] = [];
  for (let at = 0; at < files.length; at += AT_ONCE) {
    await Promise.all(
      files.slice(at, at + AT_ONCE).map(async (file) => {
        const old = before.find((each) => isSame(each, file));
        try {
          const result = await cluster.dryRunApply(file, old === undefined ? undefined : serverSideApplierOf(old));
          applied.set(file, whole(result, old));
        } catch (error) {
          if (isMeshError(error, "NO_ANSWER")) throw error;
          asInFile.push(`${titleOf(file)}: ${errorMessage(error)}`);
        }
      }),
    );
  }
  const resultOf = <T extends KubeObject>(file: T) => (applied.get(file) ?? file) as T;
  const objects = [...edits.objects].map(([source, each]) => [source, each.map(resultOf)] as const);
  const results = {
    namespaces: edits.namespaces.map(resultOf),
    clusters: edits.clusters.map(resultOf),
    decisions: edits.decisions.map(resultOf),
  };
  return { edits: { ...edits, ...results, objects: new Map(objects) }, asInFile };
}

/** A text of the stored object that is not there any more is null, which takes it away. */
function whole(object: KubeObject, before: KubeObject | undefined): KubeObject {
  const { labels, annotations } = before?.metadata ?? {};
  const { metadata } = object;
  const gone = { labels: withNulls(labels, metadata.labels), annotations: withNulls(annotations, metadata.annotations) };
  return { ...object, metadata: { ...metadata, ...gone } } as KubeObject;
}

function withNulls(before: object = {}, after: object = {}): object {
  return { ...Object.fromEntries(Object.keys(before).map((key) => [key, null])), ...after };
}

function isSame(a: KubeObject, b: KubeObject): boolean {
  const [first, second] = [a, b].map((each) => (each as { readonly kind?: string }).kind);
  const isKind = first === undefined || second === undefined || first === second;
  return isKind && a.metadata.namespace === b.metadata.namespace && a.metadata.name === b.metadata.name;
}
