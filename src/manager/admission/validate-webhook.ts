// The validating webhook of the source kinds. It compares the object of the request with the other objects in the stores. Its
// failurePolicy is Ignore, so no other code relies on its refusals: they only report problems earlier.
import { formatProblem, type Problem } from "../../api/problems.ts";
import { isObject } from "../../api/rule.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Store } from "../../runtime/store.ts";
import type { App, Apps, Source } from "../sources/app.ts";
import type { AdmissionAnswer, AdmissionRequest } from "./admission-review.ts";
import type { Review } from "./webhook.ts";

/** For the early check, which reports only refusals and needs only the object itself. */
export const NO_SURROUNDINGS: Omit<ValidateOptions, "sources"> = {
  apps: { list: () => [] },
  namespaces: { list: () => [], hasSynced: false },
};

export interface ValidateOptions {
  readonly sources: readonly Source[];
  readonly apps: Pick<Apps, "list">;
  readonly namespaces: Pick<Store<KubeObject>, "list" | "hasSynced">;
}

export function createValidateWebhook({ sources, apps, namespaces }: ValidateOptions): Review {
  return (request) => {
    const source = sources.find((each) => isAbout(request, each));
    if (source === undefined || (request.operation !== "CREATE" && request.operation !== "UPDATE")) return notOurs(request);
    if (!isObject(request.object)) return { allowed: false, reason: "BadRequest", message: "the review carries no object" };
    const { kind } = source.resource;
    const appName = source.appNameOf(request.object as KubeObject);
    const [own, others] = split(apps.list(request.namespace), ({ ref }) => ref.name === appName && ref.kind === kind);
    const { problems, warnings } = source.judgeEdit(request.oldObject ?? undefined, request.object, {
      own: own[0],
      others,
      namespaces: namespaces.hasSynced ? namespaces.list().map(namespaceFacts) : undefined,
    });
    const all = request.operation === "CREATE" ? [...namesakes(others, appName, request.name), ...problems] : problems;
    return all.length === 0 ? { allowed: true, warnings } : refusal(source, request.name, all);
  };
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

function isAbout({ resource, subResource = "" }: AdmissionRequest, source: Source): boolean {
  return resource.group === source.resource.group && resource.resource === source.resource.resource && subResource === "";
}

function notOurs({ operation, resource }: AdmissionRequest): AdmissionAnswer {
  return { allowed: false, reason: "BadRequest", message: `this webhook does not check ${operation} of ${resource.resource}` };
}

/** kubectl prints each cause on a line of its own. */
const MAX_CAUSES = 100;

function refusal({ resource: { group, kind } }: Source, name = "", problems: readonly Problem[]): AdmissionAnswer {
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  return {
    allowed: false,
    reason: "Invalid",
    message: `${kind} ${name} has ${count}: ${problems.map(formatProblem).join("; ")}`,
    details: { name, group, kind, causes: problems.slice(0, MAX_CAUSES).map(causeOf) },
  };
}

function causeOf(problem: Problem) {
  return { reason: "FieldValueInvalid", field: problem.path, message: formatProblem({ ...problem, path: "" }) };
}

function namespaceFacts({ metadata }: KubeObject) {
  return { name: metadata.name ?? "", labels: metadata.labels ?? {} };
}
