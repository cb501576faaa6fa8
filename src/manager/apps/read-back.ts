// Whether the API server still has the specs from which a table was compiled. Invariants: the answer comes
// from reads that began after this process had seen every change of a namespace in the table. One list of the
// kind answers for all apps and all earlier changes, and a check costs at most one request more.
import { metadataOnly } from "../../kube/client/resource.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { KubeObject } from "../../kube/types.ts";
import { getIfThere } from "../../runtime/patch-current.ts";
import type { Store } from "../../runtime/store.ts";
import type { Source, SourceObject } from "./app.ts";

export interface ReadBackOptions {
  readonly client: Pick<KubeClient, "get" | "list">;
  readonly source: Pick<Source, "resource" | "inputsOf" | "partsSelector">;
  readonly store: Pick<Store<SourceObject>, "wrote">;
}

export type ReadBack = ReturnType<typeof createReadBack>;

/** @param changesSeen the number of changes of namespaces that this process has seen */
export function createReadBack({ client, source, store }: ReadBackOptions, changesSeen: () => number) {
  let last: { readonly atChange: number; readonly versions: Promise<ReadonlySet<string>> } | undefined;

  /** Text that identifies an object and the parts of it on which a table depends. */
  const specOf = (object: KubeObject) =>
    JSON.stringify([object.metadata.uid, object.metadata.generation, source.inputsOf(object)]);

  // The metadata is enough, since each write of a spec or of a status gives the object another version.
  async function listVersions(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const { items } = await client.list(metadataOnly(source.resource), { labelSelector: source.partsSelector, signal });
    return new Set(items.map(versionOf));
  }

  function versionsSince(change: number, signal: AbortSignal): Promise<ReadonlySet<string>> {
    if (last !== undefined && last.atChange >= change) return last.versions;
    const list = { atChange: changesSeen(), versions: listVersions(signal) };
    list.versions.catch(() => {
      if (last === list) last = undefined;
    });
    last = list;
    return list.versions;
  }

  /** These objects of one namespace as the API server has them now. The result may have other objects too. */
  async function readAgain(objects: readonly SourceObject[], signal: AbortSignal): Promise<readonly SourceObject[]> {
    const { namespace, name = "" } = objects[0]?.metadata ?? {};
    if (objects.length > 1) return (await client.list(source.resource, { namespace, signal })).items;
    const found = await getIfThere(client, source.resource, { namespace, name }, { signal });
    return found === undefined ? [] : [found];
  }

  return {
    specOf,
    changesSeen,
    /**
     * "edited": the API server has another spec, which is in the store now. "gone": an object is gone or was
     * created again under its name.
     * @param change the number of changes of namespaces that the table contains
     */
    async check(objects: readonly SourceObject[], change: number, signal: AbortSignal): Promise<"same" | "edited" | "gone"> {
      const versions = await versionsSince(change, signal);
      // An object that is newer than the list is among them.
      const doubtful = objects.filter((object) => !versions.has(versionOf(object)));
      if (doubtful.length === 0) return "same";
      const byUid = new Map((await readAgain(doubtful, signal)).map((object) => [object.metadata.uid, object]));
      const current = doubtful.flatMap(({ metadata }) => byUid.get(metadata.uid) ?? []);
      if (current.length < doubtful.length) return "gone";
      const edited = current.filter((object, at) => specOf(object) !== specOf(doubtful[at] ?? object));
      for (const object of edited) store.wrote(object);
      return edited.length === 0 ? "same" : "edited";
    },
  };
}

function versionOf({ metadata: { uid, resourceVersion } }: KubeObject): string {
  return `${uid}/${resourceVersion}`;
}
