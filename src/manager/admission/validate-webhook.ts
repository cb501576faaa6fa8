// The validating webhook of VirtualApps: the object as it comes, the neighbours from the stores. See virtual-app-edit.ts for what is
// judged. Its failurePolicy is Ignore, so what it refuses is only ever told earlier here, never relied on elsewhere.
import { formatProblem, type Problem } from "../../api/problems.ts";
import { VIRTUAL_APPS } from "../../api/resources.ts";
import { isObject } from "../../api/rule.ts";
import type { VirtualApp } from "../../api/virtual-app.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Store } from "../../runtime/store.ts";
import type { AdmissionAnswer, AdmissionRequest } from "./admission-review.ts";
import { judgeEdit } from "./virtual-app-edit.ts";
import type { Review } from "./webhook.ts";

/** For the first look: nothing is said beside refusals, so nothing else has to be known. */
export const NO_SURROUNDINGS: ValidateOptions = { apps: { list: () => [] }, namespaces: { list: () => [], hasSynced: false } };

export interface ValidateOptions {
  readonly apps: Pick<Store<VirtualApp>, "list">;
  readonly namespaces: Pick<Store<KubeObject>, "list" | "hasSynced">;
}

export function createValidateWebhook({ apps, namespaces }: ValidateOptions): Review {
  return (request) => {
    const { resource, group } = request.resource;
    const isOurs = group === VIRTUAL_APPS.group && resource === VIRTUAL_APPS.resource && (request.subResource ?? "") === "";
    if (!isOurs || (request.operation !== "CREATE" && request.operation !== "UPDATE")) return notOurs(request);
    if (!isObject(request.object)) return { allowed: false, reason: "BadRequest", message: "the review carries no object" };
    const { problems, warnings } = judgeEdit(request.oldObject ?? undefined, request.object, {
      others: apps.list(request.namespace).filter(({ metadata }) => metadata.name !== request.name),
      namespaces: namespaces.hasSynced ? namespaces.list().map(namespaceFacts) : undefined,
    });
    return problems.length === 0 ? { allowed: true, warnings } : refusal(request.name, problems);
  };
}

function notOurs({ operation, resource }: AdmissionRequest): AdmissionAnswer {
  return { allowed: false, reason: "BadRequest", message: `this webhook does not judge ${operation} of ${resource.resource}` };
}

/** kubectl prints each on a line of its own. */
const MAX_CAUSES = 100;

function refusal(name = "", problems: readonly Problem[]): AdmissionAnswer {
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  return {
    allowed: false,
    reason: "Invalid",
    message: `VirtualApp ${name} has ${count}: ${problems.map(formatProblem).join("; ")}`,
    details: { name, group: VIRTUAL_APPS.group, kind: VIRTUAL_APPS.kind, causes: problems.slice(0, MAX_CAUSES).map(causeOf) },
  };
}

function causeOf(problem: Problem) {
  return { reason: "FieldValueInvalid", field: problem.path, message: formatProblem({ ...problem, path: "" }) };
}

function namespaceFacts({ metadata }: KubeObject) {
  return { name: metadata.name ?? "", labels: metadata.labels ?? {} };
}
