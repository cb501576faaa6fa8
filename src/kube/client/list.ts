// Reads a whole list in pages. It returns the resourceVersion of the first page, so that a watch from there
// sees everything that happened after. It never joins pages of two different states.
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
  const pageSize = options.pageSize ?? DEFAULT_PAGE_SIZE;
  for (const limit of [pageSize, pageSize, 0]) {
    const list = await listPages(context, resource, options, limit);
    if (list !== undefined) return list;
  }
  throw new MeshError(
    "KUBE_MALFORMED",
    `listing ${resourceName(resource)}: the server continues a list that was requested without pages`,
  );
}

/** Undefined if the continuation expired. */
async function listPages<T extends KubeObject>(
  context: ExchangeContext,
  resource: Resource<T>,
  options: ListOptions,
  limit: number,
): Promise<KubeList<T> | undefined> {
  const items: T[] = [];
  let resourceVersion: string | undefined;
  let continueToken = "";
  do {
    let page: KubeList<T>;
    try {
      page = await listPage(context, resource, options, limit, continueToken);
    } catch (error) {
      if (continueToken !== "" && isStatus(error, "Expired", "Gone")) return undefined;
      throw error;
    }
    for (const item of page.items) items.push(item);
    resourceVersion ??= page.metadata.resourceVersion;
    continueToken = page.metadata.continue ?? "";
  } while (continueToken !== "");
  return { metadata: resourceVersion === undefined ? {} : { resourceVersion }, items };
}

async function listPage<T extends KubeObject>(
  context: ExchangeContext,
  resource: Resource<T>,
  options: ListOptions,
  limit: number,
  continueToken: string,
): Promise<KubeList<T>> {
  const { namespace, labelSelector, fieldSelector, resourceVersion } = options;
  const query = formatQuery({
    labelSelector,
    fieldSelector,
    limit: limit === 0 ? undefined : limit,
    continue: continueToken,
    // A continue token carries its version. The server refuses a request with both.
    resourceVersion: continueToken === "" ? resourceVersion : undefined,
  });
  const doing = `listing ${resourceName(resource)}`;
  const body = await exchange(context, {
    ...options,
    method: "GET",
    path: collectionPath(resource, namespace) + query,
    headers: { accept: acceptOf(resource, "list") },
    doing,
  });
  return readPage(resource, body, doing);
}

function readPage<T extends KubeObject>(resource: Resource<T>, body: unknown, doing: string): KubeList<T> {
  try {
    const page = body as KubeList<KubeObject>;
    const project = projectionOf(resource);
    const { kind } = resource;
    const apiVersion = apiVersionOf(resource);
    // The items of a typed list have no kind, the objects of watch events have one. Readers get a kind in
    // both cases.
    const items = (page.items ?? []).map((item) => project({ apiVersion, kind, ...item }));
    return { metadata: { ...page.metadata }, items };
  } catch (cause) {
    throw new MeshError("KUBE_MALFORMED", `${doing}: the answer is not a list: ${errorMessage(cause)}`, { cause });
  }
}
