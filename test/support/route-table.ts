// Shorthand for route tables in tests: rules in a few words, namespaces by the rules that contain them.

import { tableToBytes } from "../../src/mesh/contract/table-json.ts";
import { TABLE_JSON, type TableJson, tableFromJson } from "../../src/mesh/contract/table-schema.ts";
import { NO_CALLER_POLICY, type Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import type { ResourceMatch, RetainedClass, RouteRule, RouteTable } from "../../src/mesh/ownership/table.ts";
import { parseTerms } from "../localkube/parse-terms.ts";

/** All resources of one group. */
export function group(apiGroup: string, ...resources: string[]): ResourceMatch {
  return { apiGroups: [apiGroup], resources: resources.length === 0 ? ["*"] : resources };
}

export function sharded(...resources: ResourceMatch[]): RouteRule {
  return { kind: "sharded", resources, origin: "spec.limits" };
}

export function limit(...resources: ResourceMatch[]): RouteRule {
  return { kind: "limit", resources, origin: "spec.route.globalLimits[0]" };
}

export function subset(name: string, ...resources: ResourceMatch[]): RouteRule {
  return { kind: "subset", subset: name, resources, origin: `subRules[${name}].match[0]` };
}

/** A subset's rule on labels, with one term. */
export function objects(name: string, selector: string, ...resources: ResourceMatch[]): RouteRule {
  const [term] = parseTerms(selector);
  if (term === undefined) throw new Error(`${selector}is not a term`);
  return { kind: "objects", subset: name, term, resources, origin: `subRules[${name}].match[0]` };
}

export function objectLimit(selector: string, ...resources: ResourceMatch[]): RouteRule {
  return { kind: "object-limit", terms: parseTerms(selector), resources, origin: "spec.route.globalLimits[0]" };
}

export function fence(...resources: ResourceMatch[]): RouteRule {
  return { kind: "fence", because: "moves", resources, origin: "handover" };
}

/** The fence of a subset that does not own anything yet. */
export function unreportedFence(): RouteRule {
  return { kind: "fence", because: "unreported", resources: [group("*")], origin: "handover" };
}

/** @param members the indices of the rules that contain each namespace; "" is the cluster scope */
export function table(
  rules: readonly RouteRule[],
  members: Readonly<Record<string, readonly number[]>>,
  more: {
    readonly sharedResources?: readonly ResourceMatch[];
    readonly fenced?: readonly string[];
    readonly retained?: readonly RetainedClass[];
  } = {},
): RouteTable {
  const classes = [...new Set(Object.values(members).map((row) => row.join()))].sort(); // as they come from the wire
  return {
    rules,
    classes: classes.map((row) => (row === "" ? [] : row.split(",").map(Number))),
    classOf: new Map(Object.entries(members).map(([namespace, row]) => [namespace, classes.indexOf(row.join())])),
    sharedResources: more.sharedResources ?? [],
    fenced: new Set(more.fenced),
    ...(more.retained === undefined ? {} : { retained: more.retained }),
  };
}

/** Namespaces that a pod retains read-only, with all resources or only `resources`. */
export function retained(namespaces: readonly string[], ...resources: ResourceMatch[]): RetainedClass {
  return { namespaces: new Set(namespaces), rules: [{ resources, visible: true }] };
}

export function snapshot(routes: RouteTable, more: Partial<Snapshot> = {}): Snapshot {
  return {
    version: 1,
    digest: "digest-1",
    app: { namespace: "shop", name: "app" },
    subset: "",
    podNamespace: "shop",
    lockName: "shop-lock",
    table: routes,
    callers: NO_CALLER_POLICY,
    ...more,
  };
}

/** A table as the wire has it. */
export function tableToJson(of: RouteTable): TableJson {
  return TABLE_JSON.parse(readBody(tableToBytes(of)));
}

/** @throws Error for a table that could not be enforced */
export function tableFromBytes(bytes: Uint8Array): RouteTable {
  return tableFromJson(TABLE_JSON.parse(readBody(bytes)), (path, problem) => {
    throw new Error(`${path.join(".")}: ${problem}`);
  });
}

/** The body of a resource, in JSON. */
export function readBody(body: Uint8Array = new Uint8Array()): unknown {
  return JSON.parse(Buffer.from(body).toString());
}
