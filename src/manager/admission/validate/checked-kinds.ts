// The source kinds and the policy kinds as kinds that the validating webhook checks. An object of a source is
// compared with the other objects in the stores. Invariant: an edit that adds no problem is allowed, so users
// can correct a stored object step by step.
import { formatProblem, type Problem } from "../../../api/problems.ts";
import { fieldAt, isObject } from "../../../api/rule.ts";
import type { KubeObject } from "../../../kube/types.ts";
import type { App, Apps, AppWords, Reroute, Source } from "../../apps/app.ts";
import { addedProblems } from "../../apps/check-edit.ts";
import type { PolicyKind, PolicyObject } from "../../policies/policy-kind.ts";
import type { Caller } from "../server/webhook.ts";
import type { CountMoves } from "./edit-moves.ts";
import type { CheckedKind } from "./validate-webhook.ts";

export interface SourceChecks {
  readonly sources: readonly Source[];
  /**
   * The other apps. The early check has none, since it reports only refusals and needs only the object
   * itself.
   */
  readonly apps: Pick<Apps, "list">;
  /**
   * Absent: no answer says how many namespaces an edit moves. A client that may ask often would learn the
   * names of all namespaces.
   */
  readonly countMoves?: CountMoves | undefined;
}

export function checkedSources({ sources, apps, countMoves }: SourceChecks): CheckedKind[] {
  return sources.map((source) => ({
    resource: source.resource,
    async judgeEdit(before, after, { namespace, name }, caller) {
      const { kind } = source.resource;
      // Only a client that is not the API server sends an object without metadata.
      const appName = isObject(fieldAt(after, "metadata")) ? source.appNameOf(after as KubeObject) : "";
      const [[current], others] = split(apps.list(namespace), ({ ref }) => ref.name === appName && ref.kind === kind);
      const { problems, warnings, reroute } = source.judgeEdit(before, after, { own: current, others });
      const taken = before === undefined ? namesakes(others, appName, name) : [];
      const moves =
        countMoves === undefined || reroute === undefined ? [] : await moveWarnings(reroute, countMoves, caller, source.words);
      return { problems: [...taken, ...problems], warnings: [...warnings, ...moves] };
    },
  }));
}

/** An edit that moves this share of all namespaces, or this many, gets a warning. */
const RISKY_SHARE = 0.5;
const RISKY_COUNT = 100;

async function moveWarnings({ before, after, restarts }: Reroute, countMoves: CountMoves, caller: Caller, words: AppWords) {
  const { moved, total } = (await countMoves(before, after, caller)) ?? { moved: 0, total: 0 };
  if (moved === 0 || (moved < total * RISKY_SHARE && moved < RISKY_COUNT)) return [];
  const restarting = restarts ? "; pods that lose namespaces are restarted one after the other" : "";
  return [`moves ${moved} of ${total} namespaces to other owners${restarting}; ${words.pausedField}: true stops it`];
}

function split<T>(items: readonly T[], isFirst: (item: T) => boolean): readonly [T[], T[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

/** The label of injected pods and the snapshots contain an app's name without its kind. */
function namesakes(others: readonly App[], appName: string, objectName: string | undefined): Problem[] {
  return others
    .filter(({ ref }) => ref.name === appName)
    .map(({ ref: { kind } }) =>
      appName === objectName
        ? { path: "metadata.name", message: `is the name of a ${kind} of this namespace; use another name` }
        : { path: "spec", message: `names its family ${JSON.stringify(appName)}, as a ${kind} of this namespace is named` },
    );
}

export function checkedPolicies(kinds: readonly PolicyKind[]): CheckedKind[] {
  return kinds.map((kind) => ({
    resource: kind.resource,
    judgeEdit(before, after) {
      const compiled = kind.compile(after as PolicyObject);
      if (compiled.ok) return { problems: [], warnings: compiled.policy.notes };
      const old = before === undefined ? undefined : kind.compile(before as PolicyObject);
      const problems = addedProblems(old === undefined || old.ok ? [] : old.problems, compiled.problems);
      if (problems.length > 0) return { problems, warnings: [] };
      return { problems: [], warnings: compiled.problems.map((each) => `not corrected yet: ${formatProblem(each)}`) };
    },
  }));
}
