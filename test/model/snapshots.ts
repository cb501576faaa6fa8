// Equal snapshots and tables of a model are one object each, as the manager's shared tables are: planning remembers by object.

import type { UpdateMessage } from "../../src/mesh/contract/messages.ts";
import { tableHash } from "../../src/mesh/contract/table-json.ts";
import type { ClusterTables, Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import type { RouteTable } from "../../src/mesh/ownership/table.ts";

const tables = new Map<string, RouteTable>();
const snapshots = new Map<string, Snapshot>();

export function intern(snapshot: Snapshot): Snapshot {
  const { clusterTables } = snapshot;
  // Routes as an old proxy has them have the digest of those that it was sent.
  const key = `${snapshot.digest} ${snapshot.version} ${clusterTables === undefined}`;
  const known = snapshots.get(key);
  if (known !== undefined) return known;
  const made = {
    ...snapshot,
    table: internTable(snapshot.table),
    ...(clusterTables && { clusterTables: internAll(clusterTables) }),
  };
  snapshots.set(key, made);
  return made;
}

function internAll(all: ClusterTables): ClusterTables {
  return new Map([...all].map(([name, table]) => [name, internTable(table)]));
}

function internTable(table: RouteTable): RouteTable {
  const hash = textOf(tableHash(table));
  const known = tables.get(hash) ?? table;
  tables.set(hash, known);
  return known;
}

export function tableByHash(hash: Uint8Array): RouteTable | undefined {
  return tables.get(textOf(hash));
}

function textOf(hash: Uint8Array): string {
  return Buffer.from(hash).toString("base64");
}

/** The update as a proxy reads it that does not know clusters whose requests proxies serve. It ignores these fields. */
export function asOld(update: UpdateMessage): UpdateMessage {
  const { resource } = update;
  if (resource === null) return update;
  const { clusterTables: _, ...rest } = JSON.parse(Buffer.from(resource.body).toString()) as OldBody;
  const clusters = rest.clusters?.map(({ upstream: __, ...cluster }) => cluster);
  return { ...update, resource: { ...resource, body: Buffer.from(JSON.stringify({ ...rest, clusters })) } };
}

interface OldBody {
  readonly clusterTables?: unknown;
  readonly clusters?: readonly { readonly upstream?: unknown }[];
}

/** The same for routes on disk. */
export function storedAsOld({ clusterTables: _, clusters, ...rest }: Snapshot): Snapshot {
  return intern({ ...rest, clusters: clusters?.map(({ upstream: __, ...cluster }) => cluster) });
}
