// The validating webhook of the mesh's own kinds. Its failurePolicy is Ignore, so no other code relies on its
// refusals. Invariant: an edit that adds no problem is allowed, so users can correct an object step by step.
import { formatProblem, type Problem } from "../../../api/problems.ts";
import { fieldAt, isObject } from "../../../api/rule.ts";
import { plainText } from "../../../base/plain-text.ts";
import type { Resource } from "../../../kube/client/resource.ts";
import type { KubeObject } from "../../../kube/types.ts";
import type { App, Apps, AppWords, EditVerdict, Reroute, Source } from "../../apps/app.ts";
import { addedProblems } from "../../apps/check-edit.ts";
import type { RouteSpec } from "../../apps/compile/route-spec.ts";
import type { PolicyKind, PolicyObject } from "../../policies/policy-kind.ts";
import type { AdmissionAnswer, AdmissionRequest } from "../server/admission-review.ts";
import type { Caller, Review } from "../server/webhook.ts";

type Verdict = Pick<EditVerdict, "problems" | "warnings">;

export interface CheckedKind {
  readonly resource: Resource;
  /** `before` is undefined for an object that is created. */
  judgeEdit(
    before: unknown,
    after: object,
    place: Pick<AdmissionRequest, "namespace" | "name">,
    caller: Caller,
  ): Verdict | Promise<Verdict>;
}

export function createValidateWebhook(kinds: readonly CheckedKind[]): Review {
  return async (request, caller) => {
    const kind = kinds.find((each) => isAbout(request, each));
    // The leader writes the configuration: a newer one, or one with more options, has the API server ask about more than this replica checks.
    if (kind === undefined || (request.operation !== "CREATE" && request.operation !== "UPDATE")) return { allowed: true };
    if (!isObject(request.object)) return { allowed: false, reason: "BadRequest", message: "the review carries no object" };
    const before = request.operation === "CREATE" ? undefined : (request.oldObject ?? undefined);
    const { problems, warnings } = await kind.judgeEdit(before, request.object, request, caller);
    return problems.length === 0 ? { allowed: true, warnings } : refusal(kind, request.name, problems);
  };
}

function isAbout({ resource, subResource = "" }: AdmissionRequest, kind: CheckedKind): boolean {
  return resource.group === kind.resource.group && resource.resource === kind.resource.resource && subResource === "";
}

/** kubectl prints each cause on a line of its own. */
const MAX_CAUSES = 100;
/** Texts of the schemas have some hundred characters, but a name of an unknown field may have any number. */
const MAX_CAUSE_CHARS = 700;

function refusal({ resource: { group, kind } }: CheckedKind, name = "", problems: readonly Problem[]): AdmissionAnswer {
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  return {
    allowed: false,
    reason: "Invalid",
    message: `${kind} ${name} has ${count}: ${problems.map(formatProblem).join("; ")}`,
    details: { name, group, kind, causes: problems.slice(0, MAX_CAUSES).map(causeOf) },
  };
}

function causeOf(problem: Problem) {
  const field = plainText(problem.path, MAX_CAUSE_CHARS);
  return { reason: "FieldValueInvalid", field, message: plainText(formatProblem({ ...problem, path: "" }), MAX_CAUSE_CHARS) };
}

/** `moved` counts the namespaces in which some resource gets another owner. */
export type RouteMoves = { readonly moved: number; readonly total: number };

/** As approximate as `comparedOwners`. Undefined if the count takes too long or is not possible now. */
export type CountMoves = (before: RouteSpec, after: RouteSpec, caller: Caller) => Promise<RouteMoves | undefined>;

interface SourceChecks {
  readonly sources: readonly Source[];
  /** The early check gets no apps, since it needs only the object itself. */
  readonly apps: Pick<Apps, "list">;
  /** Absent if strangers may ask: with many questions they would learn the names of all namespaces. */
  readonly countMoves?: CountMoves | undefined;
}

/** An object of a source is compared with the other objects in the stores. */
export function checkedSources({ sources, apps, countMoves }: SourceChecks): CheckedKind[] {
  return sources.map((source) => ({
    resource: source.resource,
    async judgeEdit(before, after, { namespace, name }, caller) {
      const { kind } = source.resource;
      // The API server sends no object without metadata.
      const appName = isObject(fieldAt(after, "metadata")) ? source.appNameOf(after as KubeObject) : "";
      const inNamespace = apps.list(namespace);
      const own = inNamespace.find(({ ref }) => ref.name === appName && ref.kind === kind);
      const others = inNamespace.filter((app) => app !== own);
      const { problems, warnings, reroute } = source.judgeEdit(before, after, { own, others });
      const taken = before === undefined ? namesakes(others, appName, name) : [];
      const moves =
        countMoves === undefined || reroute === undefined ? [] : await moveWarnings(reroute, countMoves, caller, source.words);
      return { problems: [...taken, ...problems], warnings: [...warnings, ...moves] };
    },
  }));
}

/** An edit that moves this share of all namespaces, or this number, gets a warning. */
const RISKY_SHARE = 0.5;
const RISKY_COUNT = 100;

async function moveWarnings(reroute: Reroute, countMoves: CountMoves, caller: Caller, words: AppWords) {
  const { before, after, restarts, isEstimate } = reroute;
  const { moved, total } = (await countMoves(before, after, caller)) ?? { moved: 0, total: 0 };
  if (moved === 0 || (moved < total * RISKY_SHARE && moved < RISKY_COUNT)) return [];
  const restarting = restarts ? "; pods that lose namespaces are restarted one after the other" : "";
  // A pause does not keep the namespaces of a subset that is gone.
  const left = subsetsIn(after);
  const stop = [...subsetsIn(before)].every((subset) => left.has(subset)) ? `; ${words.pausedField}: true stops it` : "";
  return [`${isEstimate === true ? "may move" : "moves"} ${moved} of ${total} namespaces to other owners${restarting}${stop}`];
}

function subsetsIn({ rules }: RouteSpec): ReadonlySet<string> {
  return new Set(rules.flatMap((rule) => (rule.kind === "subset" ? [rule.subset] : [])));
}

/** The label of injected pods and the snapshots contain the name of an app without its kind. */
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
      if (compiled.ok) return { problems: [], warnings: compiled.value.notes };
      const old = before === undefined ? undefined : kind.compile(before as PolicyObject);
      const problems = addedProblems(old === undefined || old.ok ? [] : old.problems, compiled.problems);
      if (problems.length > 0) return { problems, warnings: [] };
      return { problems: [], warnings: compiled.problems.map((each) => `not corrected yet: ${formatProblem(each)}`) };
    },
  }));
}
