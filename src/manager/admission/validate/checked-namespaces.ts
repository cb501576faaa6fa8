// Namespaces as a checked kind: an edit of labels that moves the namespace is allowed with a warning. Opt-in,
// since the API server then asks about edits of namespaces, and any client that can ask learns which apps
// divide them.
import { dnsLabelSchema } from "../../../api/names.ts";
import { fieldAt, isObject } from "../../../api/rule.ts";
import type { Clock } from "../../../base/clock.ts";
import { NAMESPACES } from "../../../kube/client/resources.ts";
import type { Labels } from "../../../kube/label-selector.ts";
import type { Owner } from "../../../route/table.ts";
import { ownerText } from "../../../route/words.ts";
import { isDeepEqual } from "../../../runtime/merge-patch.ts";
import type { App, Apps } from "../../apps/app.ts";
import type { Compile } from "../../apps/compile/compiler.ts";
import type { NamespaceFacts } from "../../apps/compile/route-spec.ts";
import { comparedOwners, isSameOwner } from "../../apps/namespace-owners.ts";
import type { Caller } from "../server/webhook.ts";
import type { MoveLimit } from "./edit-moves.ts";
import type { CheckedKind } from "./validate-webhook.ts";

/** Clients show only some. */
const MAX_WARNINGS = 8;
/** For one app and its one namespace: far more than any ordinary spec takes. */
const LIMIT_MS = 50;
/** For all apps: the API server waits for the answer. */
const TOTAL_MS = 1_000;

export interface NamespaceChecks {
  readonly apps: Pick<Apps, "list">;
  readonly compile: Compile;
  readonly limit: MoveLimit;
  readonly clock: Pick<Clock, "monotonicMs">;
}

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
  const tables = await Promise.all([edit.before, edit.after].map((facts) => compile(route, [facts], LIMIT_MS, { signal })));
  const compared = comparedOwners(tables.filter((table) => table !== undefined));
  if (compared.length < tables.length) return [];
  const [old, next] = compared.map((ownersIn) => ownersIn(name));
  const at = old?.findIndex((owner, index) => !isSameOwner(owner, next?.[index])) ?? -1;
  const [from, to] = [old?.[at], next?.[at]] as [Owner | undefined, Owner | undefined];
  if (from === undefined || to === undefined) return [];
  const app = `${ref.kind} ${ref.namespace}/${ref.name}`;
  return [`namespace ${JSON.stringify(name)} moves from ${ownerText(from)} to ${ownerText(to)} of ${app}`];
}
