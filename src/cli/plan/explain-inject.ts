// Why a pod has a sidecar, or has none: by the selectors of the apps, as the manager reads them.
import { carriesProxy, INJECTED_LABEL } from "../../api/injected-pod.ts";
import { PODS, type Pod } from "../../kube/client/resources.ts";
import type { App } from "../../manager/apps/app.ts";
import { APP_KINDS } from "../apps/apps.ts";
import type { Call } from "../frame/command.ts";
import { EXIT, type ExitCode } from "../frame/exit.ts";
import { namespaceOf } from "../frame/flags.ts";
import { managerSources } from "./sources.ts";

export async function runExplainInject(name: string, { flags, output, cluster }: Call): Promise<ExitCode> {
  const connected = await cluster();
  const namespace = namespaceOf(flags, connected.namespace);
  const [pod, ...lists] = await Promise.all([
    connected.get(PODS, { namespace, name }),
    ...APP_KINDS.map(({ resource }) => connected.list(resource, namespace)),
  ]);
  const apps = managerSources().flatMap((source, at) => source.appsOf((lists[at] ?? []) as never));
  const answer = explainInject(pod, apps);
  output.data("InjectionExplanation", { pod: { namespace, name }, ...answer }, [
    `pod ${name} ${answer.hasSidecar ? "has" : "has no"} sidecar: ${answer.because}`,
  ]);
  return answer.isRight ? EXIT.ok : EXIT.findings;
}

interface InjectionAnswer {
  readonly hasSidecar: boolean;
  /** It is as the apps ask now. */
  readonly isRight: boolean;
  readonly app?: string | undefined;
  readonly because: string;
}

export function explainInject(pod: Pod, apps: readonly App[]): InjectionAnswer {
  const { labels = {} } = pod.metadata;
  const hasSidecar = carriesProxy(pod);
  const selecting = apps.filter(({ pods, isEnding }) => !isEnding && pods.selects(labels));
  const [app, rival] = selecting;
  const of = labels[INJECTED_LABEL];
  if (app !== undefined && rival !== undefined) {
    const names = selecting.map(titleOf).join(" and ");
    return { hasSidecar, isRight: false, because: `${names} select it: a new pod that two apps select is refused` };
  }
  if (app === undefined && hasSidecar)
    return { hasSidecar, isRight: false, because: `it was made for ${of ?? "an app"}, and no app selects it now: restart it` };
  if (app === undefined) {
    const known =
      apps.length === 0 ? "there is no app in its namespace" : `its labels match none of: ${apps.map(titleOf).join(", ")}`;
    return { hasSidecar, isRight: true, because: known };
  }
  const named = { app: app.ref.name, hasSidecar };
  if (hasSidecar) return { ...named, isRight: of === app.ref.name, because: ofApp(app, of) };
  return { ...named, isRight: false, because: whyNot(pod, app) };
}

function ofApp(app: App, of: string | undefined): string {
  return of === app.ref.name
    ? `${titleOf(app)} selects it`
    : `it was made for ${of ?? "another app"}, and ${titleOf(app)} selects it now: restart it`;
}

function whyNot({ metadata }: Pod, app: App): string {
  const title = titleOf(app);
  const since = app.object.metadata.creationTimestamp ?? "";
  if ((metadata.creationTimestamp ?? "") < since) return `it is older than ${title}, which selects it: restart it`;
  const { conditions = [] } = app.object.status ?? {};
  const ready = conditions.find(({ type }) => type === "InjectionReady");
  if (ready?.status === "False") return `${title} selects it, and injection is not ready (${ready.reason}): ${ready.message}`;
  return `${title} selects it, and the webhook has not seen it: restart it, and look at: ctrlmesh check`;
}

function titleOf({ ref: { kind, namespace, name } }: App): string {
  return `${kind} ${namespace}/${name}`;
}
