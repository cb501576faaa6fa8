// The running sidecars of an app, each asked for a debug page. Invariant: one that does not answer hides no other.
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import { errorMessage } from "../../base/errors.ts";
import { PODS, type Pod } from "../../kube/client/resources.ts";
import type { Cluster } from "../frame/cluster.ts";
import { failure } from "../frame/command.ts";
import { counted, type Output } from "../frame/output.ts";
import type { FoundApp } from "./apps.ts";
import { askSidecar, type Page } from "./ask-sidecar.ts";

/** Each takes a connection and a process. */
const MAX_PODS = 10;

/** What a pod has said, or why it was not asked. */
export interface Asked<T> {
  /** NAMESPACE/NAME. */
  readonly app: string;
  readonly pod: string;
  readonly answer?: T | undefined;
  readonly problem?: string | undefined;
}

/** @param podName only this pod @throws MeshError `COMMAND_FAILED` if none of the apps has a pod with a sidecar that runs */
export async function askSidecarsOf<T>(
  cluster: Cluster,
  apps: readonly Pick<FoundApp, "name" | "namespace">[],
  page: Page<T>,
  output: Pick<Output, "hint">,
  podName?: string,
): Promise<Asked<T>[]> {
  const asked = await Promise.all(apps.map((app) => askApp(cluster, app, page, podName)));
  const left = asked.reduce((sum, each) => sum + each.left, 0);
  if (left > 0) output.hint(`${counted(left, "pod")} more not asked`);
  const answers = asked.flatMap((each) => each.answers);
  if (answers.length === 0) throw failure("no pod of these apps has a sidecar that runs");
  return answers;
}

async function askApp<T>(
  cluster: Cluster,
  { name, namespace }: Pick<FoundApp, "name" | "namespace">,
  page: Page<T>,
  podName?: string,
) {
  const running = (await cluster.list(PODS, namespace, `${INJECTED_LABEL}=${name}`)).filter(isRunning);
  const pods = podName === undefined ? running : running.filter(({ metadata }) => metadata.name === podName);
  const ask = async ({ metadata }: Pod): Promise<Asked<T>> => {
    const who = { app: `${namespace}/${name}`, pod: metadata.name ?? "" };
    try {
      return { ...who, answer: await askSidecar(cluster, { namespace, name: who.pod }, page) };
    } catch (error) {
      return { ...who, problem: `not asked: ${errorMessage(error)}` };
    }
  };
  return { answers: await Promise.all(pods.slice(0, MAX_PODS).map(ask)), left: Math.max(0, pods.length - MAX_PODS) };
}

/** Its sidecar can be asked. */
export function isRunning({ metadata, status }: Pod): boolean {
  return status?.phase === "Running" && metadata.deletionTimestamp === undefined;
}
