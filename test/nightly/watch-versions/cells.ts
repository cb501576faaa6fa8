// The matrix of test/nightly/watch-versions.test.ts: what a client watches, from which version, and in which encoding. A cell takes a version
// as a client of that kind would, through the proxy, and opens one watch from it.
import type { Probe, ProbeStream } from "../../support/probe.ts";
import { PROTOBUF } from "../../support/requests.ts";
import { type Element, type List, readList, readObject, readWatch } from "../../support/slices.ts";

export const ORIGINS = ["create", "get", "list", "bookmark"] as const;
export type Origin = (typeof ORIGINS)[number];
export const ENCODINGS = { JSON: "application/json", protobuf: PROTOBUF } as const;
export type Encoding = keyof typeof ENCODINGS;

export interface Scope {
  readonly name: string;
  /** The path of a list, and of a watch of the same objects. */
  readonly path: string;
  /** The query of both; empty if there is none. */
  readonly query: string;
  /** The path of an object of the scope that exists. */
  readonly object: string;
  /** Writes an object of the scope: creates it, or for namespaces changes the one that exists. */
  readonly write: { readonly method: "POST" | "PATCH"; readonly path: string; readonly body: (name: string) => object };
}

const CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
/** The ClusterRole that the test creates. */
export const CLUSTER_ROLE = "watched";
/** The label of the objects that the scope with a label selector selects. */
export const LABELS = { watched: "yes" };

/** A kind that no namespace contains. The default subset owns its objects. */
export function clusterRoles(): Scope {
  const body = (name: string) => ({ metadata: { name }, rules: [] });
  return {
    name: "clusterroles",
    path: CLUSTER_ROLES,
    query: "",
    object: `${CLUSTER_ROLES}/${CLUSTER_ROLE}`,
    write: { method: "POST", path: CLUSTER_ROLES, body },
  };
}

/** The other scopes, of a client whose subset owns `namespace`. */
export function scopesOf(namespace: string): Scope[] {
  const inOne = `/api/v1/namespaces/${namespace}/configmaps`;
  const object = `${inOne}/a`;
  const write = { method: "POST", path: inOne, body: (name: string) => ({ metadata: { name, labels: LABELS } }) } as const;
  const annotate = (name: string) => ({ metadata: { annotations: { last: name } } });
  const own = `/api/v1/namespaces/${namespace}`;
  return [
    {
      name: "namespaces",
      path: "/api/v1/namespaces",
      query: "",
      object: own,
      write: { method: "PATCH", path: own, body: annotate },
    },
    { name: "one namespace", path: inOne, query: "", object, write },
    { name: "all namespaces", path: "/api/v1/configmaps", query: "", object, write },
    { name: "all namespaces, by labels", path: "/api/v1/configmaps", query: "labelSelector=watched%3Dyes", object, write },
  ];
}

/** A watch through a proxy. */
export interface Cell {
  readonly scope: Scope;
  readonly origin: Origin;
  readonly encoding: Encoding;
  /** The version from which it watches. */
  readonly version: string;
  /** The objects that the client knows from the answer with that version, as namespace/name: none from a create or a get. */
  readonly listed: readonly string[];
  readonly stream: ProbeStream;
}

/** Where a cell begins. */
export type Start = Omit<Cell, "stream">;

/** Takes a version as a client does. @param name of an object that it may create */
export async function takeVersion(probe: Probe, scope: Scope, origin: Origin, encoding: Encoding, name: string): Promise<Start> {
  return { scope, origin, encoding, ...(await VERSIONS[origin](probe, scope, ENCODINGS[encoding], name)) };
}

/** Watches from the version. */
export async function openCell(probe: Probe, start: Start): Promise<Cell> {
  return { ...start, stream: await watchFrom(probe, start.scope, start.encoding, start.version) };
}

export function watchFrom(probe: Probe, scope: Scope, encoding: Encoding, version: string): Promise<ProbeStream> {
  return probe.stream(withQuery(scope, `watch=1&allowWatchBookmarks=true&resourceVersion=${version}`), {
    accept: ENCODINGS[encoding],
  });
}

/** Lists the scope. @throws Error if that fails */
export async function listOf(probe: Probe, scope: Scope, accept: string): Promise<List> {
  const { status, headers, body } = await probe.get(withQuery(scope, ""), { accept });
  const list = readList(String(headers["content-type"]), body);
  valid(`list of ${scope.name}`, status, list.resourceVersion);
  return list;
}

type Begin = Pick<Cell, "version" | "listed">;

const VERSIONS: Record<Origin, (probe: Probe, scope: Scope, accept: string, name: string) => Promise<Begin>> = {
  async create(probe, { name: what, write }, accept, name) {
    const { status, headers, body } = await probe.send(write.method, write.path, write.body(name), { accept });
    return { version: valid(`write of ${what}`, status, readObject(String(headers["content-type"]), body).version), listed: [] };
  },
  async get(probe, { object }, accept) {
    const { status, headers, body } = await probe.get(object, { accept });
    return { version: valid(`get of ${object}`, status, readObject(String(headers["content-type"]), body).version), listed: [] };
  },
  async list(probe, scope, accept) {
    const { resourceVersion, elements } = await listOf(probe, scope, accept);
    return { version: resourceVersion, listed: elements.map(keyOf) };
  },
  async bookmark(probe, scope, accept) {
    const query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    const stream = await probe.stream(withQuery(scope, query), { accept });
    try {
      for (;;) {
        const events = readWatch(stream.contentType, stream.bytes());
        const end = events.findIndex(({ initialEnd }) => initialEnd);
        const version = events[end]?.version;
        if (version !== undefined)
          return {
            version: valid(`initial events of ${scope.name}`, stream.status, version),
            listed: events.slice(0, end).map(keyOf),
          };
        if (stream.ended()) throw new Error(`the initial events of ${scope.name} ended: ${stream.bytes().toString("latin1")}`);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    } finally {
      stream.close();
    }
  },
};

/** namespace/name */
export function keyOf({ namespace, name }: Element): string {
  return `${namespace}/${name}`;
}

function withQuery({ path, query }: Scope, more: string): string {
  const all = [query, more].filter((part) => part !== "").join("&");
  return all === "" ? path : `${path}?${all}`;
}

function valid(what: string, status: number, version: string): string {
  if (status >= 300 || !/^\d+$/.test(version)) throw new Error(`${what}: status ${status}, version "${version}"`);
  return version;
}
