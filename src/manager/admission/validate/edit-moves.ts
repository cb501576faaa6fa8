// Computes what an edit of a route, or of the labels of a namespace, moves. Invariant: a computation takes a
// bounded time, whatever the specs say. Without a result, the edit passes without a warning.
import { dnsLabelSchema } from "../../../api/names.ts";
import { fieldAt, isObject } from "../../../api/rule.ts";
import type { Clock } from "../../../base/clock.ts";
import { NAMESPACES } from "../../../kube/client/resources.ts";
import type { Labels } from "../../../kube/label-selector.ts";
import type { Owner } from "../../../mesh/ownership/owners.ts";
import type { RouteTable } from "../../../mesh/ownership/table.ts";
import { ownerText } from "../../../mesh/ownership/words.ts";
import { isDeepEqual } from "../../../runtime/merge-patch.ts";
import type { App, Apps } from "../../apps/app.ts";
import type { Compile } from "../../apps/compile/compiler.ts";
import type { NamespaceFacts, RouteSpec } from "../../apps/compile/route-spec.ts";
import { comparedOwners, isSameOwner } from "../../apps/namespace-owners.ts";
import type { Caller } from "../server/webhook.ts";
import type { CheckedKind, CountMoves, RouteMoves } from "./validate-webhook.ts";

/** The time of one compilation: ordinary rules for 10,000 namespaces take as long. */
const LIMIT_MS = 500;

interface MoveCounterOptions {
  readonly compile: Compile;
  /** Undefined while the namespaces are not known. */
  readonly namespaces: () => readonly NamespaceFacts[] | undefined;
  readonly limit: MoveLimit;
}

export function createMoveCounter({ compile, namespaces, limit }: MoveCounterOptions): CountMoves {
  const count = async (before: RouteSpec, after: RouteSpec, { signal }: Caller): Promise<RouteMoves | undefined> => {
    const all = namespaces();
    if (all === undefined) return undefined;
    const old = await compile(before, all, LIMIT_MS, { signal });
    const next = old && (await compile(after, all, LIMIT_MS, { signal }));
    if (old === undefined || next === undefined) return undefined;
    const isMoved = createComparison(old, next);
    return { moved: all.filter(({ name }) => isMoved(name)).length, total: all.length };
  };
  return (before, after, caller) => limit(caller.address, () => count(before, after, caller));
}

/** All namespaces of a class have the same owners, so each pair of classes is compared once. */
function createComparison(old: RouteTable, next: RouteTable): (namespace: string) => boolean {
  const [ownersBefore, ownersAfter] = comparedOwners([old, next]);
  const results = new Map<string, boolean>();
  return (namespace) => {
    const pair = `${old.classOf.get(namespace)},${next.classOf.get(namespace)}`;
    const isMoved = results.get(pair) ?? hasMoved(ownersBefore?.(namespace) ?? [], ownersAfter?.(namespace) ?? []);
    results.set(pair, isMoved);
    return isMoved;
  };
}

type Owners = ReturnType<ReturnType<typeof comparedOwners>[number]>;

function hasMoved(before: Owners, after: Owners): boolean {
  return before.some((owner, index) => !isSameOwner(owner, after[index]));
}

// Any pod can ask, and an answer takes up to a second of computing. So at most one question of each address,
// and MAX_AT_ONCE in total, are answered at a time. Undefined if there is no room.
type MoveLimit = <T>(address: string, question: () => Promise<T>) => Promise<T | undefined>;

const MAX_AT_ONCE = 8;

export function createMoveLimit(): MoveLimit {
  const asking = new Set<string>();
  return async (address, question) => {
    if (asking.has(address) || asking.size >= MAX_AT_ONCE) return undefined;
    asking.add(address);
    try {
      return await question();
    } finally {
      asking.delete(address);
    }
  };
}

/** Clients show only the first warnings. */
const MAX_WARNINGS = 8;
/** The time for one app and its namespace: far more than an ordinary spec takes. */
const ONE_MS = 50;
/** The time for all apps: the API server waits for the answer. */
const TOTAL_MS = 1_000;

export interface NamespaceChecks {
  readonly apps: Pick<Apps, "list">;
  readonly compile: Compile;
  readonly limit: MoveLimit;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** Warns of edits that move a namespace. It is opt-in: a client that asks learns which apps divide it. */
export function checkedNamespaces({ apps, compile, limit, clock }: NamespaceChecks): CheckedKind {
  const movesOf = async (edit: LabelEdit, { signal }: Caller): Promise<string[]> => {
    const warnings: string[] = [];
    const endMs = clock.monotonicMs() + TOTAL_MS;
    for (const app of apps.list()) {
      if (warnings.length >= MAX_WARNINGS || clock.monotonicMs() >= endMs || signal.aborted) break;
      warnings.push(...(await moveWarning(app, edit, compile, signal)));
    }
    return warnings;
  };
  return {
    resource: NAMESPACES,
    async judgeEdit(before, after, _place, caller) {
      const edit = labelEditOf(before, after);
      const warnings = edit && (await limit(caller.address, () => movesOf(edit, caller)));
      return { problems: [], warnings: warnings ?? [] };
    },
  };
}

interface LabelEdit {
  readonly before: NamespaceFacts;
  readonly after: NamespaceFacts;
}

// Any pod may call this port with any objects. Only the API server's calls are filtered by the match
// condition.
function labelEditOf(before: unknown, after: unknown): LabelEdit | undefined {
  const { data: name } = dnsLabelSchema.safeParse(fieldAt(after, "metadata", "name"));
  const [old, next] = [labelsOf(before), labelsOf(after)];
  if (name === undefined || old === undefined || next === undefined || isDeepEqual(old, next)) return undefined;
  return { before: { name, labels: old }, after: { name, labels: next } };
}

/** Undefined if the object is not a namespace. */
function labelsOf(object: unknown): Labels | undefined {
  const metadata = fieldAt(object, "metadata");
  const labels = fieldAt(metadata, "labels") ?? {};
  return isObject(metadata) && isObject(labels) ? (labels as Labels) : undefined;
}

async function moveWarning({ ref, spec }: App, edit: LabelEdit, compile: Compile, signal: AbortSignal): Promise<string[]> {
  if (spec === undefined || spec.isPaused) return [];
  const { name } = edit.after;
  const route = spec.route();
  const tables = await Promise.all([edit.before, edit.after].map((facts) => compile(route, [facts], ONE_MS, { signal })));
  const compared = comparedOwners(tables.filter((table) => table !== undefined));
  if (compared.length < tables.length) return [];
  const [old, next] = compared.map((ownersIn) => ownersIn(name));
  const at = old?.findIndex((owner, index) => !isSameOwner(owner, next?.[index])) ?? -1;
  const [from, to] = [old?.[at], next?.[at]] as [Owner | undefined, Owner | undefined];
  if (from === undefined || to === undefined) return [];
  const app = `${ref.kind} ${ref.namespace}/${ref.name}`;
  return [`namespace ${JSON.stringify(name)} moves from ${ownerText(from)} to ${ownerText(to)} of ${app}`];
}
