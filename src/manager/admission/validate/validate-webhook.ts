// The validating webhook of the mesh's own kinds. Its failurePolicy is Ignore, so no other code relies on its
// refusals: they only report problems earlier.
import { formatProblem, type Problem } from "../../../api/problems.ts";
import { isObject } from "../../../api/rule.ts";
import { plainText } from "../../../base/plain-text.ts";
import type { Resource } from "../../../kube/client/resource.ts";
import type { EditVerdict } from "../../apps/app.ts";
import type { AdmissionAnswer, AdmissionRequest } from "../server/admission-review.ts";
import type { Caller, Review } from "../server/webhook.ts";

type Verdict = Pick<EditVerdict, "problems" | "warnings">;

/** A kind whose objects the webhook checks. */
export interface CheckedKind {
  readonly resource: Resource;
  /** Judges an object that is created (`before` is then undefined) or changed. */
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
    if (kind === undefined || (request.operation !== "CREATE" && request.operation !== "UPDATE")) return notOurs(request);
    if (!isObject(request.object)) return { allowed: false, reason: "BadRequest", message: "the review carries no object" };
    const before = request.operation === "CREATE" ? undefined : (request.oldObject ?? undefined);
    const { problems, warnings } = await kind.judgeEdit(before, request.object, request, caller);
    return problems.length === 0 ? { allowed: true, warnings } : refusal(kind, request.name, problems);
  };
}

function isAbout({ resource, subResource = "" }: AdmissionRequest, kind: CheckedKind): boolean {
  return resource.group === kind.resource.group && resource.resource === kind.resource.resource && subResource === "";
}

function notOurs({ operation, resource }: AdmissionRequest): AdmissionAnswer {
  return { allowed: false, reason: "BadRequest", message: `this webhook does not check ${operation} of ${resource.resource}` };
}

/** kubectl prints each cause on a line of its own. */
const MAX_CAUSES = 100;
/**
 * The longest path and the longest message that the schemas make have some hundred. Names of unknown fields
 * have any length.
 */
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
