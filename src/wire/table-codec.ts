// Converts a route table to a message, to bytes and to a hash. Invariant: equal tables give equal messages,
// even if they number their classes differently.
import { createHash, type Hash } from "node:crypto";
import { isLabelOperator, type LabelTerm } from "../kube/label-selector.ts";
import type {
  LabelTermMessage,
  NamespaceClassMessage,
  RetainedClassMessage,
  RouteTableMessage,
  RuleMessage,
} from "../mesh/contract/messages.ts";
import { ResourceInvalidError } from "../mesh/contract/resource-type.ts";
import { placeLists } from "../mesh/ownership/place-lists.ts";
import type { RouteRule, RouteTable } from "../mesh/ownership/table.ts";
import type { MemoryBudget } from "./bounded-decoder.ts";
import { classesToBytes } from "./class-bytes.ts";
import { ROUTE_TABLE_MESSAGE } from "./load-proto.ts";

export function tableToWire(table: RouteTable): RouteTableMessage {
  return { ...fixedTableToWire(table), classes: classesToWire(table), fenced: [...table.fenced].sort() };
}

/** The part of the table that a delta cannot change. */
export function fixedTableToWire({
  rules,
  sharedResources,
  retained = [],
}: RouteTable): Omit<RouteTableMessage, "classes" | "fenced"> {
  const rows = retained.map((row) => ({ rules: row.rules, namespaces: [...row.namespaces].sort() }));
  return { rules: rules.map(ruleToWire), sharedResources, retained: sortedBy(rows, (row) => JSON.stringify(row)) };
}

/**
 * Decodes and checks a table.
 * @param problems receives every problem. After a problem the result must not be used
 */
export function tableFromWire(message: RouteTableMessage, problems: string[]): RouteTable {
  const rules = message.rules.map((rule, index) =>
    ruleFromWire(rule, (problem) => problems.push(`table.rules[${index}]${problem}`)),
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
    sharedResources: message.sharedResources,
    fenced: new Set(message.fenced),
    ...retainedFromWire(message.retained, problems),
  };
}

/** The table's bytes. They are not cached, because they are large. */
export function tableToBytes(table: RouteTable): Uint8Array {
  return Buffer.concat([beginningOf(table).bytes.deref() ?? beginningToBytes(table), endToBytes(table)]);
}

/** @throws ResourceInvalidError, or MeshError `MESSAGE_INVALID` */
export function tableFromBytes(bytes: Uint8Array, memory?: MemoryBudget): RouteTable {
  const problems: string[] = [];
  const table = tableFromWire(ROUTE_TABLE_MESSAGE.decode(bytes, memory), problems);
  if (problems.length > 0) throw new ResourceInvalidError(problems);
  return table;
}

export function hashBytes(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}

const hashes = new WeakMap<RouteTable, Buffer>();

/** The hash of the table's bytes. Computed once for each table, which many subsets and reconciles share. */
export function tableHash(table: RouteTable): Buffer {
  const hash = hashes.get(table) ?? beginningOf(table).hash.copy().update(endToBytes(table)).digest();
  hashes.set(table, hash);
  return hash;
}

/** The number of the field `classes` of RouteTable. */
const CLASSES_FIELD = 2;

interface Beginning extends Pick<RouteTable, "rules" | "classes"> {
  readonly hash: Hash;
  /** Kept as long as somebody uses them: 0.2 MB for 10,000 namespaces. */
  readonly bytes: WeakRef<Uint8Array>;
}

const beginnings = new WeakMap<RouteTable["classOf"], Beginning>();

// The tables of 64 shards differ only in the fences and in what is retained. A message has its fields in the
// order of their numbers, so these come last, and the beginning, nearly all of the bytes, is made once.
function beginningOf(table: RouteTable): Beginning {
  const { rules, classes, classOf } = table;
  const known = beginnings.get(classOf);
  if (known?.rules === rules && known.classes === classes) return known;
  const bytes = beginningToBytes(table);
  const beginning = { rules, classes, hash: createHash("sha256").update(bytes), bytes: new WeakRef(bytes) };
  beginnings.set(classOf, beginning);
  return beginning;
}

function beginningToBytes(table: RouteTable): Uint8Array {
  const rules = ROUTE_TABLE_MESSAGE.encode({ ...NO_TABLE, rules: table.rules.map(ruleToWire) });
  return Buffer.concat([rules, classesToBytes(CLASSES_FIELD, classesToWire(table))]);
}

const NO_TABLE: RouteTableMessage = { rules: [], classes: [], sharedResources: [], fenced: [], retained: [] };

function endToBytes(table: RouteTable): Uint8Array {
  const { sharedResources, retained } = fixedTableToWire({ ...table, rules: [] });
  return ROUTE_TABLE_MESSAGE.encode({ ...NO_TABLE, sharedResources, fenced: [...table.fenced].sort(), retained });
}

function classesToWire({ classes, classOf }: RouteTable): NamespaceClassMessage[] {
  const lists = placeLists(classOf);
  const rows = classes.map((rules, index) => ({ rules, namespaces: lists[index] ?? [] }));
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
    return { namespaces: new Set(namespaces), rules };
  });
  return { retained };
}

function sortedBy<T>(rows: readonly T[], keyOf: (row: T) => string): T[] {
  return rows
    .map((row) => [keyOf(row), row] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, row]) => row);
}

function ruleToWire(rule: RouteRule): RuleMessage {
  const { resources, origin } = rule;
  const common = { subset: "", resources, origin, terms: [] };
  switch (rule.kind) {
    case "sharded":
      return { kind: "SHARDED", ...common };
    case "limit":
      return { kind: "LIMIT", ...common };
    case "subset":
      return { kind: "SUBSET", ...common, subset: rule.subset };
    case "object-limit":
      return { kind: "OBJECT_LIMIT", ...common, terms: rule.terms };
    case "objects":
      return { kind: "OBJECTS", ...common, subset: rule.subset, terms: [rule.term] };
    case "fence":
      return { kind: rule.because === "moves" ? "FENCE_MOVES" : "FENCE", ...common };
    default:
      return rule satisfies never;
  }
}

/**
 * Decodes and checks a rule. An unknown kind or term makes the table invalid: without the rule a subset could
 * own more than it was granted.
 * @param report called with each problem, with its path below the rule. After a problem the result must not
 * be used
 */
function ruleFromWire({ kind, subset, origin, resources, terms }: RuleMessage, report: (problem: string) => void): RouteRule {
  if ((kind === "SUBSET" || kind === "OBJECTS") && subset === "") report(".subset: missing");
  if (kind === "LIMIT") return { kind: "limit", resources, origin };
  if (kind === "SUBSET") return { kind: "subset", subset, resources, origin };
  if (!KINDS_WITH_RESOURCES.has(kind)) {
    report(`.kind: ${String(kind)} is not known to this proxy`);
    return { kind: "fence", because: "moves", resources, origin };
  }
  if (resources.length === 0) report(".resources: missing");
  if (kind === "SHARDED") return { kind: "sharded", resources, origin };
  if (kind === "FENCE") return { kind: "fence", because: "unreported", resources, origin };
  if (kind === "FENCE_MOVES") return { kind: "fence", because: "moves", resources, origin };
  checkTerms(terms, report);
  const labels = terms as readonly LabelTerm[];
  if (kind === "OBJECT_LIMIT") return { kind: "object-limit", terms: labels, resources, origin };
  const [term = NO_TERM] = labels;
  if (terms.length !== 1) report(`.terms: must be one, are ${terms.length}`);
  return { kind: "objects", subset, term, resources, origin };
}

const KINDS_WITH_RESOURCES: ReadonlySet<RuleMessage["kind"]> = new Set([
  "OBJECT_LIMIT",
  "OBJECTS",
  "FENCE",
  "FENCE_MOVES",
  "SHARDED",
]);

const NO_TERM: LabelTerm = { key: "", operator: "exists", values: [] };

function checkTerms(terms: readonly LabelTermMessage[], report: (problem: string) => void): void {
  for (const [index, { key, operator, values }] of terms.entries()) {
    const needsValues = operator === "in" || operator === "notin";
    if (key === "") report(`.terms[${index}].key: missing`);
    if (!isLabelOperator(operator)) report(`.terms[${index}].operator: ${JSON.stringify(operator)} is not known to this proxy`);
    else if (needsValues !== values.length > 0)
      report(`.terms[${index}].values: ${operator} ${needsValues ? "needs some" : "takes none"}`);
  }
}
