// Route tables that no spec could have made, which a pod of a tenant says that it enforces. A process makes
// one of each kind, and each pod's own from it: equal tables would be one in the manager's memory.

import type { ProxyMessage } from "../../src/mesh/contract/messages.ts";
import { namedRoute } from "../../src/mesh/contract/route-type.ts";
import { hashBytes, tableHash, tableToBytes } from "../../src/mesh/contract/table-json.ts";
import { NO_CALLER_POLICY, type Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import type { RouteTable } from "../../src/mesh/ownership/table.ts";
import type { FakePod } from "./attack.ts";

export type TableKind = "small" | "memory" | "time";

export interface ForeignTable {
  readonly bytes: Uint8Array;
  readonly hash: Buffer;
}

/**
 * A table of 5.9 MB that takes 85 MB in the registry, one of 13 MB that takes minutes to plan with, and one
 * as usual.
 */
const SIZES: Readonly<Record<TableKind, { rules: number; classes: number; rulesOfClass: number; namespaces: number }>> = {
  small: { rules: 1, classes: 1, rulesOfClass: 1, namespaces: 1 },
  memory: { rules: 4, classes: 1, rulesOfClass: 1, namespaces: 500_000 },
  time: { rules: 90_000, classes: 4_000, rulesOfClass: 400, namespaces: 4_000 },
};

/** In the name of each namespace, where a pod's own table has another letter. */
const MARK = "f0-";
const made = new Map<TableKind, Buffer>();

/** @param variant from 0 to 9 */
export function tableOf(kind: TableKind, variant = 0): ForeignTable {
  const first = made.get(kind) ?? Buffer.from(tableToBytes(tableOfSize(kind)));
  made.set(kind, first);
  const bytes = Buffer.from(first.toString("latin1").replaceAll(MARK, `f${variant}-`), "latin1");
  return { bytes, hash: hashBytes(bytes) };
}

function tableOfSize(kind: TableKind): RouteTable {
  const { rules, classes, rulesOfClass, namespaces } = SIZES[kind];
  return {
    rules: Array.from({ length: rules }, () => ({ kind: "subset" as const, subset: "x", resources: [], origin: "" })),
    classes: Array.from({ length: classes }, (_, at) => Array.from({ length: rulesOfClass }, (_, index) => (at + index) % rules)),
    classOf: new Map(Array.from({ length: namespaces }, (_, index) => [`${MARK}${index}`, index % classes])),
    sharedResources: [],
    fenced: new Set(),
  };
}

const SMALL = tableOfSize("small");

/** The registration of a pod that enforces a route with that table. */
export function registrationWith({ namespace, name, uid }: FakePod, { hash }: ForeignTable): ProxyMessage {
  const route: Snapshot = {
    version: 1,
    digest: "00".repeat(16),
    app: { namespace, name: "tenant" },
    subset: "",
    podNamespace: namespace,
    lockName: "tenant",
    callers: NO_CALLER_POLICY,
    table: SMALL,
  };
  const named = namedRoute(route);
  const text = Buffer.from(named.body).toString();
  const body = Buffer.from(text.replace(tableHash(SMALL).toString("base64"), hash.toString("base64")));
  const claims = { version: 1, acknowledged: { ...named, body }, inDoubt: [], mayHoldMore: false };
  const facts = { proxyVersion: "siege", capabilities: ["type:routes"], streamNumber: Date.now(), epoch: 0 };
  return { registration: { pod: { namespace, name, uid }, ...facts, route: claims } };
}
