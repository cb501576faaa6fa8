// Converts a route table to a message, to bytes and to a hash. Invariant: equal tables give equal messages,
// even if they number their classes differently.
import { createHash, type Hash } from "node:crypto";
import type { ResourceMatch, RouteTable } from "../route/table.ts";
import type { MemoryBudget } from "./bounded-decoder.ts";
import { ROUTE_TABLE_MESSAGE } from "./load-proto.ts";
import type { NamespaceClassMessage, ResourceMatchMessage, RetainedClassMessage, RouteTableMessage } from "./messages.ts";
import { ResourceInvalidError } from "./resource-type.ts";
import { ruleFromWire, ruleToWire } from "./rule-codec.ts";

/** The fields that a delta can change. */
type MovingPart = "classes" | "fenced";

export function tableToWire(table: RouteTable): RouteTableMessage {
  return { ...fixedTableToWire(table), classes: classesToWire(table), fenced: [...table.fenced].sort() };
}

/** The part of the table that a delta cannot change. */
export function fixedTableToWire({ rules, sharedResources, retained = [] }: RouteTable): Omit<RouteTableMessage, MovingPart> {
  const rows = retained.map((row) => ({ rules: row.rules, namespaces: [...row.namespaces].sort() }));
  return {
    rules: rules.map(ruleToWire),
    sharedResources,
    retained: sortedBy(rows, (row) => JSON.stringify(row)),
  };
}

/**
 * Decodes and checks a table.
 * @param problems receives every problem. After a problem the result must not be used
 */
export function tableFromWire(message: RouteTableMessage, problems: string[]): RouteTable {
  const rules = message.rules.map((rule, index) =>
    ruleFromWire(rule, rule.resources.map(matchFromWire), (problem) => problems.push(`table.rules[${index}]${problem}`)),
  );
  if (rules.slice(1).some(({ kind }) => kind === "sharded")) problems.push("table.rules: SHARDED must be the first rule");
  const classOf = new Map<string, number>();
  message.classes.forEach((row, index) => {
    for (const rule of row.rules) {
      if (rule >= rules.length) problems.push(`table.classes[${index}].rules: ${rule} is no rule, there are ${rules.length}`);
    }
    for (const namespace of row.namespaces) {
      if (classOf.has(namespace)) problems.push(`table.classes[${index}].namespaces: "${namespace}" is in two classes`);
      classOf.set(namespace, index);
    }
  });
  return {
    rules,
    classes: message.classes.map((row) => [...row.rules].sort((a, b) => a - b)),
    classOf,
    sharedResources: message.sharedResources.map(matchFromWire),
    fenced: new Set(message.fenced),
    ...retainedFromWire(message.retained, problems),
  };
}

/** The table's bytes. They are not cached, because they are large and rarely needed again. */
export function tableToBytes(table: RouteTable): Uint8Array {
  return ROUTE_TABLE_MESSAGE.encode(tableToWire(table));
}

/**
 * @param memory see MessageCodec.decode
 * @throws ResourceInvalidError, or MeshError `MESSAGE_INVALID`
 */
export function tableFromBytes(bytes: Uint8Array, memory?: MemoryBudget): RouteTable {
  const problems: string[] = [];
  const table = tableFromWire(ROUTE_TABLE_MESSAGE.decode(bytes, memory), problems);
  if (problems.length > 0) throw new ResourceInvalidError(problems);
  return table;
}

/** Returns the SHA-256. */
export function hashBytes(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}

const hashes = new WeakMap<RouteTable, Buffer>();

/**
 * The hash of the table's bytes. Computed once for each table object: many subsets and reconciles share one
 * table.
 */
export function tableHash(table: RouteTable): Buffer {
  const hash = hashes.get(table) ?? hashOf(table);
  hashes.set(table, hash);
  return hash;
}

const beginnings = new WeakMap<RouteTable["classOf"], Pick<RouteTable, "rules" | "classes"> & { readonly hash: Hash }>();

// A family of 64 shards has 64 tables, which differ at the end only: in the fences and in what is retained.
// The beginning is nearly all of the bytes, so it is hashed once. In the bytes of a message the fields follow
// each other by number.
function hashOf(table: RouteTable): Buffer {
  const { rules, classes, classOf } = table;
  const nothing = { rules: [], classes: [], sharedResources: [], fenced: [], retained: [] };
  let beginning = beginnings.get(classOf);
  if (beginning?.rules !== rules || beginning.classes !== classes) {
    const bytes = ROUTE_TABLE_MESSAGE.encode({ ...nothing, rules: rules.map(ruleToWire), classes: classesToWire(table) });
    beginning = { rules, classes, hash: createHash("sha256").update(bytes) };
    beginnings.set(classOf, beginning);
  }
  const { sharedResources, retained } = fixedTableToWire({ ...table, rules: [] });
  const end = ROUTE_TABLE_MESSAGE.encode({ ...nothing, sharedResources, fenced: [...table.fenced].sort(), retained });
  return beginning.hash.copy().update(end).digest();
}

function classesToWire({ classes, classOf }: RouteTable): NamespaceClassMessage[] {
  const members: string[][] = classes.map(() => []);
  for (const [namespace, index] of classOf) members[index]?.push(namespace);
  const rows = classes.map((rules, index) => ({ rules, namespaces: members[index]?.sort() ?? [] }));
  return sortedBy(
    rows.filter(({ namespaces }) => namespaces.length > 0),
    ({ rules }) => rules.join(),
  );
}

// Absent if nothing is retained, so that equal tables have equal fields.
function retainedFromWire(messages: readonly RetainedClassMessage[], problems: string[]): Pick<RouteTable, "retained"> {
  if (messages.length === 0) return {};
  const knownNamespaces = new Set<string>();
  const retained = messages.map(({ rules, namespaces }, index) => {
    for (const namespace of namespaces) {
      if (knownNamespaces.has(namespace)) problems.push(`table.retained[${index}].namespaces: "${namespace}" is in two classes`);
      knownNamespaces.add(namespace);
    }
    return {
      namespaces: new Set(namespaces),
      rules: rules.map(({ resources, visible }) => ({ resources: resources.map(matchFromWire), visible })),
    };
  });
  return { retained };
}

function matchFromWire({ apiGroups, resources }: ResourceMatchMessage): ResourceMatch {
  return { apiGroups: [...apiGroups], resources: [...resources] };
}

function sortedBy<T>(rows: readonly T[], keyOf: (row: T) => string): T[] {
  return rows
    .map((row) => [keyOf(row), row] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, row]) => row);
}
