// The bytes of a route table, in JSON, and their hash. Invariant: equal tables have equal bytes, even if they
// number their classes differently: the order of keys is fixed, names are sorted, classes by their rules, and
// no class is empty.
import { createHash, type Hash } from "node:crypto";
import { remember, rememberWeakly } from "../../base/remember.ts";
import { placeLists } from "../ownership/place-lists.ts";
import type { RouteTable } from "../ownership/table.ts";
import type { PlacesRow } from "./table-schema.ts";

/** JSON with sorted keys, without properties that are undefined. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return `{${fields
    .map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field)}`)
    .sort()
    .join()}}`;
}

export function rowsToJson(rows: readonly PlacesRow[]): string {
  return JSON.stringify(rows.map(({ rules, places }) => ({ rules, places })));
}

/** The table's bytes. They are not cached, because they are large. */
export function tableToBytes(table: RouteTable): Uint8Array {
  const classes = classesPartOf(table).bytes.deref() ?? classesToBytes(table);
  return Buffer.concat([classes, rulesToBytes(table.rules), Buffer.from(endToJson(table))]);
}

/** SHA-256 of the table's bytes. Computed once for each table, which many subsets and reconciles share. */
export const tableHash = remember(
  (table: RouteTable): Buffer => classesPartOf(table).hashWith(table.rules).copy().update(endToJson(table)).digest(),
);

export function hashBytes(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}

/** What a delta cannot change. */
export function fixedPartsToJson(table: RouteTable): string {
  return canonicalJson([table.rules, table.sharedResources]) + retainedToJson(table);
}

interface ClassesPart extends Pick<RouteTable, "classes"> {
  /** Kept as long as somebody uses them: 0.2 MB for 10,000 namespaces. */
  readonly bytes: WeakRef<Uint8Array>;
  /** The hash of this part and the rules, to which the end is still missing. */
  hashWith(rules: RouteTable["rules"]): Hash;
}

const classesParts = new WeakMap<RouteTable["classOf"], ClassesPart>();

// The tables of 64 shards share their classes, nearly all of the bytes, and most share their rules. So these
// come first, and are made and hashed once.
function classesPartOf(table: RouteTable): ClassesPart {
  const { classes, classOf } = table;
  const known = classesParts.get(classOf);
  if (known?.classes === classes) return known;
  const bytes = classesToBytes(table);
  const hash = createHash("sha256").update(bytes);
  const hashWith = remember((rules: RouteTable["rules"]) => hash.copy().update(rulesToBytes(rules)));
  const part = { classes, bytes: new WeakRef(bytes), hashWith };
  classesParts.set(classOf, part);
  return part;
}

function classesToBytes({ classes, classOf }: RouteTable): Uint8Array {
  const lists = placeLists(classOf);
  const rows = classes
    .map((rules, index) => ({ rules, places: lists[index] ?? [], key: rules.join() }))
    .filter(({ places }) => places.length > 0)
    .sort((a, b) => (a.key < b.key ? -1 : 1));
  return Buffer.from(`{"classes":${rowsToJson(rows)},"rules":`);
}

const rulesToBytes = rememberWeakly((rules: RouteTable["rules"]): Uint8Array => Buffer.from(canonicalJson(rules)));

function endToJson(table: RouteTable): string {
  const [fenced, shared] = [JSON.stringify([...table.fenced].sort()), canonicalJson(table.sharedResources)];
  return `,"fenced":${fenced},"retained":${retainedToJson(table)},"sharedResources":${shared}}`;
}

function retainedToJson({ retained = [] }: RouteTable): string {
  const rows = retained.map((row) => canonicalJson({ places: [...row.namespaces].sort(), rules: row.rules }));
  return `[${rows.sort().join()}]`;
}
