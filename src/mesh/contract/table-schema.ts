// The route table in JSON: one schema, and the checks that concern several of its parts. Invariant: a table
// that is read without a problem can be enforced. A rule or term that this version does not know is a
// problem, since without it a subset could own more than it was granted. So a fence on resources is a rule.
// Unknown fields are ignored: a new field must be safe to ignore, as `retained` is (the pod reads less).
import { z } from "zod";
import type { LabelTerm } from "../../kube/label-selector.ts";
import type { ResourceMatch, RetainedRule, RouteRule, RouteTable } from "../ownership/table.ts";

/** A table as the wire and the stored file have it. */
export type TableJson = z.output<typeof TABLE_JSON>;

/** All keys of a table, at any depth. */
export const TABLE_KEYS: ReadonlySet<string> = new Set(
  "rules classes sharedResources fenced retained places kind because subset resources origin term terms key operator values apiGroups visible".split(
    " ",
  ),
);

/** Namespaces, and "" for the cluster scope, with the same rules: ascending indices into the table's rules. */
export interface PlacesRow {
  readonly rules: readonly number[];
  readonly places: readonly string[];
}

/** @param report receives the first problems, with their paths below the table. After a problem the result must not be used */
export function tableFromJson(json: TableJson, report: (path: readonly PropertyKey[], problem: string) => void): RouteTable {
  const { rules, sharedResources } = json;
  let problems = 0;
  const reportFirst: typeof report = (path, problem) => {
    if (problems++ < MAX_PROBLEMS) report(path, problem);
  };
  const classOf = new Map<string, number>();
  json.classes.forEach((row, index) => {
    const unknown = row.rules.find((rule) => rule >= rules.length);
    if (unknown !== undefined) reportFirst(["classes", index, "rules"], noRule(unknown, rules.length));
    for (const place of row.places) {
      if (classOf.has(place)) reportFirst(["classes", index, "places"], `"${place}" is in two classes`);
      classOf.set(place, index);
    }
  });
  const classes = json.classes.map((row) => [...row.rules].sort((a, b) => a - b));
  const retainedPlaces = new Set<string>();
  json.retained.forEach(({ places }, index) => {
    for (const place of places) {
      if (retainedPlaces.has(place)) reportFirst(["retained", index, "places"], `"${place}" is in two classes`);
      retainedPlaces.add(place);
    }
  });
  const retained = json.retained.map((row) => ({ namespaces: new Set(row.places), rules: row.rules }));
  const table = { rules, classes, classOf, sharedResources, fenced: new Set(json.fenced) };
  return retained.length === 0 ? table : { ...table, retained };
}

export function noRule(index: number, count: number): string {
  return `${index} is no rule, there are ${count}`;
}

/** Of a list or a table: a body may have a million. */
const MAX_PROBLEMS = 20;

// A list of the wrong items has one problem.
function listOf<T>(isItem: (item: unknown) => boolean, what: string) {
  return z.custom<T[]>((list) => Array.isArray(list) && list.every(isItem), `must be a list of ${what}`);
}

const OBJECTS = listOf<object>((item) => typeof item === "object" && item !== null, "objects");

function objectsOf<T>(schema: z.ZodType<T>) {
  return OBJECTS.transform((items, { addIssue }) => {
    const read: T[] = [];
    let problems = 0;
    for (const [index, item] of items.entries()) {
      const { data, error } = schema.safeParse(item);
      if (error === undefined) read.push(data);
      for (const { path, message } of error?.issues ?? []) {
        if (problems++ < MAX_PROBLEMS) addIssue({ code: "custom", path: [index, ...path], message });
      }
      if (problems >= MAX_PROBLEMS) break;
    }
    return read;
  });
}

export const NAMES = listOf<string>((item) => typeof item === "string", "strings");
const INDICES = listOf<number>((item) => Number.isInteger(item) && (item as number) >= 0, "indices");
export const ROWS = objectsOf(z.object({ rules: INDICES, places: NAMES }));

const MATCHES: z.ZodType<readonly ResourceMatch[]> = objectsOf(z.object({ apiGroups: NAMES, resources: NAMES }));
const SOME_MATCHES = MATCHES.refine((matches) => matches.length > 0, "missing");
const SUBSET = z.string().min(1, "missing");

const TERM: z.ZodType<LabelTerm> = z
  .object({
    key: z.string().min(1, "missing"),
    operator: z.enum(["in", "notin", "exists", "!"], "not known to this version"),
    values: NAMES,
  })
  .refine(({ operator, values }) => (operator === "in" || operator === "notin") === values.length > 0, {
    path: ["values"],
    error: "only in and notin take some, and need some",
  });

const RULE: z.ZodType<RouteRule> = z.discriminatedUnion(
  "kind",
  [
    z.object({ kind: z.literal("sharded"), resources: SOME_MATCHES, origin: z.string() }),
    z.object({ kind: z.literal("limit"), resources: MATCHES, origin: z.string() }),
    z.object({ kind: z.literal("subset"), subset: SUBSET, resources: MATCHES, origin: z.string() }),
    z.object({ kind: z.literal("object-limit"), terms: objectsOf(TERM), resources: SOME_MATCHES, origin: z.string() }),
    z.object({ kind: z.literal("objects"), subset: SUBSET, term: TERM, resources: SOME_MATCHES, origin: z.string() }),
    z.object({
      kind: z.literal("fence"),
      because: z.enum(["moves", "unreported"], "not known to this version"),
      resources: SOME_MATCHES,
      origin: z.string(),
    }),
  ],
  "not known to this version",
);

const RETAINED_RULE: z.ZodType<RetainedRule> = z.object({ resources: MATCHES, visible: z.boolean() });

export const TABLE_JSON = z.object({
  rules: objectsOf(RULE).refine(
    (rules) => rules.slice(1).every(({ kind }) => kind !== "sharded"),
    "sharded must be the first rule",
  ),
  classes: ROWS,
  sharedResources: MATCHES,
  fenced: NAMES,
  retained: objectsOf(z.object({ rules: objectsOf(RETAINED_RULE), places: NAMES })),
});
