// Snapshot <-> wire message. Invariant: what decodes without an error can be enforced as it is; everything that cannot is
// named, all problems at once, and becomes the NACK's text.
import { MeshError } from "../base/errors.ts";
import { type CallerPolicy, NO_CALLER_POLICY, type Snapshot } from "../route/snapshot.ts";
import type { ResourceMatch, RouteTable } from "../route/table.ts";
import type { ResourceMatchMessage, RetainedClassMessage, RouteTableMessage, SnapshotMessage } from "./messages.ts";
import { ruleFromWire, ruleToWire } from "./rule-codec.ts";

/** The snapshot as a message; `nonce` names this sending of it. */
export function snapshotToWire(snapshot: Snapshot, nonce: number): SnapshotMessage {
  const { version, digest, app, subset, podNamespace, lockName, table, callers } = snapshot;
  return { nonce, version, digest, app, subset, podNamespace, lockName, table: tableToWire(table), callers };
}

/** The table as a message, namespaces sorted, so that equal tables give equal messages. */
export function tableToWire(table: RouteTable): RouteTableMessage {
  const members: string[][] = table.classes.map(() => []);
  for (const [namespace, index] of table.classOf) members[index]?.push(namespace);
  return {
    rules: table.rules.map(ruleToWire),
    classes: table.classes.map((rules, index) => ({ rules, namespaces: members[index]?.sort() ?? [] })),
    sharedResources: table.sharedResources,
    fenced: [...table.fenced].sort(),
    retained: (table.retained ?? []).map(({ rules, namespaces }) => ({ rules, namespaces: [...namespaces].sort() })),
  };
}

/** The table as a message that is equal for equal tables, however they number their classes: what came by deltas, and what came whole. */
export function canonicalTableToWire(table: RouteTable): RouteTableMessage {
  const message = tableToWire(table);
  const rows = message.classes.filter(({ namespaces }) => namespaces.length > 0).map((row) => [row.rules.join(), row] as const);
  return { ...message, classes: rows.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row) };
}

/**
 * Decodes and checks a snapshot.
 * @throws SnapshotInvalidError
 */
export function snapshotFromWire(message: SnapshotMessage): Snapshot {
  const problems: string[] = [];
  if (!Number.isSafeInteger(message.version) || message.version <= 0)
    problems.push(`version: ${message.version} is not positive`);
  if (message.digest === "") problems.push("digest: missing");
  if (message.app === null || message.app.name === "") problems.push("app: missing");
  if (message.podNamespace === "") problems.push("podNamespace: missing");
  const table = message.table === null ? undefined : tableFromWire(message.table, problems);
  if (table === undefined) problems.push("table: missing");
  if (problems.length > 0 || table === undefined || message.app === null) throw new SnapshotInvalidError(problems);
  return {
    version: message.version,
    digest: message.digest,
    app: { namespace: message.app.namespace, name: message.app.name },
    subset: message.subset,
    podNamespace: message.podNamespace,
    lockName: message.lockName,
    table,
    callers: callersFromWire(message.callers),
  };
}

/** A snapshot that cannot be enforced: code `SNAPSHOT_INVALID`, with every problem. */
export class SnapshotInvalidError extends MeshError {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super("SNAPSHOT_INVALID", `reading snapshot: ${problems.join("; ")}`);
    this.problems = problems;
  }
}

// Absent in what an older manager sent or an older proxy stored.
function callersFromWire(message: SnapshotMessage["callers"] | undefined): CallerPolicy {
  if (message === null || message === undefined) return NO_CALLER_POLICY;
  const { userAgent, defaultOnlyUserAgents, stripManagedFields } = message;
  return { userAgent, defaultOnlyUserAgents: [...defaultOnlyUserAgents], stripManagedFields };
}

function tableFromWire(message: RouteTableMessage, problems: string[]): RouteTable {
  const rules = message.rules.map((rule, index) =>
    ruleFromWire(rule, rule.resources.map(matchFromWire), (problem) => problems.push(`table.rules[${index}]${problem}`)),
  );
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
    ...retainedFromWire(message.retained ?? [], problems),
  };
}

// Absent if there is nothing, so that equal tables are equal.
function retainedFromWire(messages: readonly RetainedClassMessage[], problems: string[]): Pick<RouteTable, "retained"> {
  if (messages.length === 0) return {};
  const seen = new Set<string>();
  const retained = messages.map(({ rules, namespaces }, index) => {
    for (const namespace of namespaces) {
      if (seen.has(namespace)) problems.push(`table.retained[${index}].namespaces: "${namespace}" is in two classes`);
      seen.add(namespace);
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
