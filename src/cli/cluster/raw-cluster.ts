// The reads of a cluster by the paths of its API. Invariant: what is no answer of an API server is an error, and
// not an empty list.
import { z } from "zod";
import { collectionPath, formatQuery, objectPath } from "../../kube/client/resource.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Cluster } from "../frame/cluster.ts";
import { failure } from "../frame/command.ts";
import { readAnswer } from "../frame/read-answer.ts";

const PAGE = 500;
/** 5 million objects: a server that gives the same page for ever ends here. */
const MAX_PAGES = 10_000;

export const OBJECT = z.looseObject({ metadata: z.looseObject({}) });
const LIST = z.looseObject({
  items: z.array(OBJECT),
  metadata: z.looseObject({ continue: z.string().optional() }).optional(),
});

/** @param raw the JSON of a GET */
export function rawReads(raw: (path: string) => Promise<unknown>): Pick<Cluster, "get" | "list" | "read"> {
  return {
    read: raw,
    async get<T extends KubeObject>(...[resource, ref]: Parameters<Cluster["get"]>) {
      const path = objectPath(resource, ref);
      return readAnswer(OBJECT, await raw(path), path) as unknown as T;
    },
    async list<T extends KubeObject>(
      ...[resource, namespace, labelSelector, most = Number.POSITIVE_INFINITY]: Parameters<Cluster["list"]>
    ) {
      const found: T[] = [];
      const path = collectionPath(resource, namespace);
      let next: string | undefined;
      for (let pages = 0; pages < MAX_PAGES; pages++) {
        const query = formatQuery({ limit: Math.min(PAGE, most), labelSelector, continue: next });
        const page = readAnswer(LIST, await raw(`${path}${query}`), path);
        for (const item of page.items) found.push(item as unknown as T);
        next = page.metadata?.continue || undefined;
        if (next === undefined || found.length >= most) return found.slice(0, most);
      }
      throw failure(`reading ${path}: the list does not end`);
    },
  };
}
