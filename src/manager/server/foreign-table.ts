// Reads a table that a pod has sent, which anybody who may create a pod can make up. Pure. Invariants:
// nothing of a table is kept before all bounds hold; the cost of a kept table, in memory and in the time of a
// plan, is bounded. To refuse a table is safe, because the pod then counts as holding anything.

import { LISTED_STRING_BYTES, type MemoryBudget, parseBounded } from "../../base/bounded-json.ts";
import { NAME_HASHES } from "../../kube/place.ts";
import { TABLE_JSON, TABLE_KEYS, type TableJson, tableFromJson } from "../../mesh/contract/table-schema.ts";
import type { ResourceMatch, RouteTable } from "../../mesh/ownership/table.ts";
import { MAX_TABLE_ENTRIES } from "../apps/compile/build-table.ts";
import { CompactClasses, MAX_COMPACT_CLASSES, type NameIndex } from "./known-namespaces.ts";

/** A VirtualApp's 4,096 matches and 32 limits twice, since a pause joins two specs, and fences. */
const MAX_RULES = 8_448;
/** The limits of a VirtualApp's subsets, and those that pauses join. */
const MAX_LIMITS = 512;
/** Namespaces that came or went since the manager listed them: hundreds a minute, for minutes. */
const MAX_UNKNOWN_NAMES = 4_096;
/** The maximum without an index, as in tests. */
const MAX_NAMES = 65_536;
const MAX_NAME_LENGTH = 63;
/** Pairs of a group and a resource in all rules: twice what the API allows a VirtualApp. */
const MAX_PAIRS = 65_536;
/** Pairs of resources that move as a whole. A plan compares each with each. */
const MAX_MOVING_PAIRS = 512;
/**
 * The work of a plan for retained namespaces: for each class its rules times the groups times the resources.
 */
const MAX_RETAINED_WORK = 4_000_000;
/** Shared resources times the namespaces, and times the pairs, of the rules that may except some. */
const MAX_SHARED_WORK = 1_000_000;

/** Memory while one table is read. */
const RULES_BYTES = 8 * 1024 * 1024;
const NAME_BYTES = 3 * 128;

interface ForeignTable {
  readonly table: RouteTable;
  /** Includes what a plan keeps of the table. */
  readonly bytes: number;
}

/**
 * @param memory the stream's budget; a refused table spends it too
 * @param index the known namespaces; undefined if they are not known
 */
export function readForeignTable(
  bytes: Uint8Array,
  memory: MemoryBudget,
  index: NameIndex | undefined,
): ForeignTable | undefined {
  const maxNames = index === undefined ? MAX_NAMES : index.names.length + MAX_UNKNOWN_NAMES;
  const allowed = Math.min(memory.left, RULES_BYTES + maxNames * NAME_BYTES);
  const tableMemory: MemoryBudget = { left: allowed };
  try {
    const json = TABLE_JSON.parse(parseBounded(bytes, tableMemory, TABLE_KEYS));
    if (!isBounded(json, index, maxNames)) return undefined;
    let isInvalid = false;
    const table = tableFromJson(json, () => {
      isInvalid = true;
    });
    if (isInvalid || table.fenced.size < json.fenced.length) return undefined;
    return { table: compact(table, index), bytes: bytesOf(json, allowed - tableMemory.left, index) };
  } catch {
    return undefined;
  } finally {
    memory.left -= allowed - Math.max(0, tableMemory.left);
  }
}

function isBounded(json: TableJson, index: NameIndex | undefined, maxNames: number): boolean {
  const { rules, classes, fenced, retained, sharedResources } = json;
  if (rules.length > MAX_RULES || classes.length > MAX_COMPACT_CLASSES) return false;
  if (classes.some(({ places }) => places.length === 0)) return false;
  if (!classes.every((row) => isAscending(row.rules))) return false;
  const names = [fenced, ...[...classes, ...retained].map(({ places }) => places)];
  if (!hasBoundedNames(names, index, maxNames)) return false;
  const limits = rules.filter(({ kind }) => kind === "limit").length;
  const fences = rules.filter(({ kind }) => kind === "fence").length;
  const members = classes.reduce((sum, row) => sum + row.rules.length + limits, 0);
  if (limits > MAX_LIMITS || members > MAX_TABLE_ENTRIES) return false;
  const retainedRules = retained.reduce((sum, row) => sum + row.rules.length, 0);
  const ofRules = rules.flatMap(({ resources }) => resources);
  const matches = [...ofRules, ...retained.flatMap((row) => row.rules.flatMap(({ resources }) => resources)), ...sharedResources];
  if (pairsIn(matches) > MAX_PAIRS) return false;
  const moving = rules.filter(({ kind }) => kind !== "limit" && kind !== "subset" && kind !== "object-limit");
  if (pairsIn([...sharedResources, ...moving.flatMap(({ resources }) => resources)]) > MAX_MOVING_PAIRS) return false;
  const cells = distinct(matches, "apiGroups") * distinct(matches, "resources");
  if ((members + retainedRules + classes.length * (1 + fences)) * cells > MAX_RETAINED_WORK) return false;
  return pairsIn(sharedResources) * (pairsIn(ofRules) + namedPlaces(json)) <= MAX_SHARED_WORK;
}

/** Each rule that names resources, times the namespaces that it contains. */
function namedPlaces({ rules, classes }: TableJson): number {
  const isNaming = rules.map(({ kind, resources }) => kind === "subset" && resources.length > 0);
  return classes.reduce((sum, row) => sum + row.places.length * row.rules.filter((at) => isNaming[at]).length, 0);
}

// An ascending list also contains each rule only once.
function isAscending(rules: readonly number[]): boolean {
  return rules.every((rule, at) => at === 0 || rule > (rules[at - 1] ?? rule));
}

function hasBoundedNames(lists: readonly (readonly string[])[], index: NameIndex | undefined, maxNames: number): boolean {
  const unknown = new Set<string>();
  let total = 0;
  for (const names of lists) {
    total += names.length;
    if (total > 3 * (maxNames + NAME_HASHES + 1)) return false; // once each in a class, in the fences and retained
    for (const name of names) {
      if (name.length > MAX_NAME_LENGTH) return false;
      if (!index?.positions.has(name)) unknown.add(name);
    }
    if (unknown.size > (index === undefined ? maxNames : MAX_UNKNOWN_NAMES)) return false;
  }
  return true;
}

function pairsIn(matches: readonly ResourceMatch[]): number {
  return matches.reduce((sum, { apiGroups, resources }) => sum + apiGroups.length * resources.length, 0);
}

function distinct(matches: readonly ResourceMatch[], list: keyof ResourceMatch): number {
  return new Set(matches.flatMap((match) => match[list])).size + 1;
}

// Fences and what is retained get the names of the index, so that the strings of the text are not kept.
function compact(table: RouteTable, index: NameIndex | undefined): RouteTable {
  if (index === undefined) return table;
  const shared = (names: ReadonlySet<string>) =>
    new Set(Array.from(names, (name) => index.names[index.positions.get(name) ?? -1] ?? name));
  const { retained } = table;
  return {
    ...table,
    classOf: new CompactClasses(index, table.classOf),
    fenced: shared(table.fenced),
    ...(retained && { retained: retained.map((row) => ({ ...row, namespaces: shared(row.namespaces) })) }),
  };
}

/** For each name in a class, the memory of its class's list. The pairs with the desired table share the list. */
const PLACE_BYTES = 10;
const SET_ENTRY_BYTES = 40;
const NEW_NAME_BYTES = 160;

// A name that the index has is not kept, so only what replaces it counts.
function bytesOf({ classes, fenced, retained }: TableJson, spent: number, index: NameIndex | undefined): number {
  const lists = [...classes, ...retained].map(({ places }) => places);
  let bytes = spent + 2 * (index?.names.length ?? 0);
  for (const name of [fenced, ...lists].flat()) {
    bytes += index?.positions.has(name) ? -(LISTED_STRING_BYTES + Buffer.byteLength(name)) : NEW_NAME_BYTES;
  }
  const inSets = fenced.length + retained.reduce((sum, { places }) => sum + places.length, 0);
  const inClasses = classes.reduce((sum, { places }) => sum + places.length, 0);
  return bytes + inSets * SET_ENTRY_BYTES + inClasses * PLACE_BYTES;
}
