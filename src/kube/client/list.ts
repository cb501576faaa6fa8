// Reads a whole list in pages, with the resourceVersion of the first page, from which a watch can continue.
// Invariant: it never joins pages of two different states.
import { errorMessage, MeshError } from "../../base/errors.ts";
import { isStatus } from "../status.ts";
import type { KubeList, KubeObject } from "../types.ts";
import { type ExchangeContext, exchange } from "./exchange.ts";
import { acceptOf, apiVersionOf, collectionPath, formatQuery, projectionOf, type Resource, resourceName } from "./resource.ts";
import type { ListOptions } from "./types.ts";

const DEFAULT_PAGE_SIZE = 500;

/** Lists everything. An expired continuation (410) starts the list again, the second time without pages. */
export async function listAll<T extends KubeObject>(
  context: ExchangeContext,
  resource: Resource<T>,
  options: ListOptions,
): Promise<KubeList<T>> {
  const { namespace, labelSelector, fieldSelector, resourceVersion, pageSize = DEFAULT_PAGE_SIZE } = options;
  const doing = `listing ${resourceName(resource)}`;

  const listPage = async (limit: number, continueToken: string): Promise<KubeList<T>> => {
    const query = formatQuery({
      labelSelector,
      fieldSelector,
      limit: limit === 0 ? undefined : limit,
      continue: continueToken,
      // A continue token carries its version. The server refuses a request with both.
      resourceVersion: continueToken === "" ? resourceVersion : undefined,
    });
    const path = collectionPath(resource, namespace) + query;
    const headers = { accept: acceptOf(resource, "list") };
    return readPage(resource, await exchange(context, { ...options, method: "GET", path, headers, doing }), doing);
  };

  /** Undefined if the continuation expired. */
  const listPages = async (limit: number): Promise<KubeList<T> | undefined> => {
    const items: T[] = [];
    let firstVersion: string | undefined;
    let continueToken = "";
    do {
      let page: KubeList<T>;
      try {
        page = await listPage(limit, continueToken);
      } catch (error) {
        if (continueToken !== "" && isStatus(error, "Expired", "Gone")) return undefined;
        throw error;
      }
      for (const item of page.items) items.push(item);
      firstVersion ??= page.metadata.resourceVersion;
      continueToken = page.metadata.continue ?? "";
    } while (continueToken !== "");
    return { metadata: firstVersion === undefined ? {} : { resourceVersion: firstVersion }, items };
  };

  for (const limit of [pageSize, pageSize, 0]) {
    const list = await listPages(limit);
    if (list !== undefined) return list;
  }
  throw new MeshError("KUBE_MALFORMED", `${doing}: the server continues a list that was requested without pages`);
}

function readPage<T extends KubeObject>(resource: Resource<T>, body: unknown, doing: string): KubeList<T> {
  try {
    const page = body as KubeList<KubeObject>;
    const project = projectionOf(resource);
    const { kind } = resource;
    const apiVersion = apiVersionOf(resource);
    // The items of a typed list have no kind, unlike the objects of watch events.
    const items = (page.items ?? []).map((item) => project({ apiVersion, kind, ...item }));
    return { metadata: { ...page.metadata }, items };
  } catch (cause) {
    throw new MeshError("KUBE_MALFORMED", `${doing}: the answer is not a list: ${errorMessage(cause)}`, { cause });
  }
}
