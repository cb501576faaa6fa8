// The source kinds as kinds that the validating webhook checks: an object is compared with the other objects in the stores.
import type { Problem } from "../../api/problems.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Store } from "../../runtime/store.ts";
import type { App, Apps, Source } from "../sources/app.ts";
import type { CheckedKind } from "./validate-webhook.ts";

/** For the early check, which reports only refusals and needs only the object itself. */
export const NO_SURROUNDINGS: Omit<SourceChecks, "sources"> = {
  apps: { list: () => [] },
  namespaces: { list: () => [], hasSynced: false },
};

export interface SourceChecks {
  readonly sources: readonly Source[];
  readonly apps: Pick<Apps, "list">;
  readonly namespaces: Pick<Store<KubeObject>, "list" | "hasSynced">;
}

export function checkedSources({ sources, apps, namespaces }: SourceChecks): CheckedKind[] {
  return sources.map((source) => ({
    resource: source.resource,
    judgeEdit(before, after, { namespace, name }) {
      const { kind } = source.resource;
      const appName = source.appNameOf(after as KubeObject);
      const [own, others] = split(apps.list(namespace), ({ ref }) => ref.name === appName && ref.kind === kind);
      const { problems, warnings } = source.judgeEdit(before, after, {
        own: own[0],
        others,
        namespaces: namespaces.hasSynced ? namespaces.list().map(namespaceFacts) : undefined,
      });
      const taken = before === undefined ? namesakes(others, appName, name) : [];
      return { problems: [...taken, ...problems], warnings };
    },
  }));
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

function namespaceFacts({ metadata }: KubeObject) {
  return { name: metadata.name ?? "", labels: metadata.labels ?? {} };
}
