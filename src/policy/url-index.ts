// An index of values by the URLs of rules: paths of the API server, and URLs of other servers. Pure.
// Invariants: a URL means the same however its path is spelled (path-form.ts); a look-up reads no more segments than the
// longest path in the index has, so a long path costs as little as a short one.
import { bytesOf, queryForm, type Reading, readingsOf, segmentsOf } from "./path-form.ts";
import type { EgressTarget, PolicyRequest } from "./policy-request.ts";

const URL_PARTS = /^(https?:\/\/[^/?#]*)?([^?#]*)(\?.*)?$/is;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: ":80", https: ":443" };
/** The key of the API server, whose URLs are paths. */
const API_SERVER = "";

interface Entry<V> {
  /** Undefined: the rule is about every query. */
  readonly query: string | undefined;
  readonly value: V;
}

export function createUrlIndex<V>() {
  const byServer = new Map<string, ReturnType<typeof createPathIndex<Entry<V>>>>();
  const entriesFor = (server: string, path: string): readonly Entry<V>[] => {
    const paths = byServer.get(server);
    return paths === undefined ? [] : readingsOf(path).flatMap((reading) => paths.find(path, reading));
  };
  return {
    add(url: string, value: V): void {
      const [, server = API_SERVER, path = "", query] = URL_PARTS.exec(bytesOf(url)) ?? [];
      const paths = byServer.get(serverKey(server)) ?? createPathIndex();
      byServer.set(serverKey(server), paths);
      const [, parent] = /^(.*?)\/*\*$/.exec(path) ?? [];
      // A path of the API server is a prefix in any case, as in API Priority and Fairness.
      const isTree = parent !== undefined || server === API_SERVER || server.endsWith("//*");
      paths.add(parent ?? path, isTree, { query: query === undefined ? undefined : queryForm(query), value });
    },
    find({ egress, path }: PolicyRequest): readonly V[] {
      if (byServer.size === 0) return [];
      if (egress === undefined) return path === undefined ? [] : entriesFor(API_SERVER, path).map(({ value }) => value);
      const sentQuery = queryForm(egress.query);
      const entries = [serverOf(egress), `${egress.scheme}://*`].flatMap((key) => entriesFor(key, egress.path ?? "/"));
      return entries.flatMap(({ query, value }) => (query === undefined || query === sentQuery ? [value] : []));
    },
  };
}

function serverOf({ scheme, host, port }: EgressTarget): string {
  const authority = host.includes(":") ? `[${host}]` : host;
  return serverKey(`${scheme}://${authority}:${port}`);
}

/** In lower case, without the default port. */
function serverKey(server: string): string {
  const lower = server.toLowerCase();
  const port = DEFAULT_PORTS[lower.slice(0, lower.indexOf(":"))];
  return port !== undefined && lower.endsWith(port) ? lower.slice(0, -port.length) : lower;
}

interface Node<V> {
  readonly children: Map<string, Node<V>>;
  /** Values for this path. */
  readonly here: V[];
  /** Values for this path and everything below it. */
  readonly below: V[];
}

function createPathIndex<V>() {
  const root = createNode<V>();
  return {
    /** @param isTree the value is for everything below the path too */
    add(path: string, isTree: boolean, value: V): void {
      let node = root;
      for (const segment of segmentsOf(path)) {
        const child = node.children.get(segment) ?? createNode();
        node.children.set(segment, child);
        node = child;
      }
      (isTree ? node.below : node.here).push(value);
    },
    find(path: string, reading?: Reading): readonly V[] {
      const found = [...root.below];
      let node = root;
      for (const segment of segmentsOf(path, reading)) {
        const child = node.children.get(segment);
        if (child === undefined) return found;
        node = child;
        found.push(...node.below);
      }
      return [...found, ...node.here];
    },
  };
}

function createNode<V>(): Node<V> {
  return { children: new Map(), here: [], below: [] };
}
