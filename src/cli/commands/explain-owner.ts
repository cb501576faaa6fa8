// `ctrlmesh explain owner`: who owns a namespace, as the sidecars enforce it. Invariant: no owner is computed here:
// each answer is that of a sidecar, with the version of its routes.
import { z } from "zod";
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import { errorMessage } from "../../base/errors.ts";
import type { ObjectRef } from "../../kube/client/resource.ts";
import { PODS, type Pod } from "../../kube/client/resources.ts";
import { type FoundApp, findApp, listApps } from "../apps/apps.ts";
import { askSidecar } from "../apps/ask-sidecar.ts";
import type { Cluster } from "../frame/cluster.ts";
import { type Call, type Command, failure, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { namespaceOf } from "../frame/flags.ts";
import { columns, counted } from "../frame/output.ts";

/** Each takes a connection and a process. */
const MAX_PODS = 10;

const ANSWER = z.looseObject({ owner: z.string().nullable(), subset: z.string().optional(), version: z.number().optional() });

interface Said {
  readonly app: string;
  readonly pod: string;
  readonly subset?: string | undefined;
  /** Of the routes that it enforces. A pod whose routes have not changed keeps their version. */
  readonly version?: number | undefined;
  readonly owner?: string | undefined;
  readonly problem?: string | undefined;
}

export const EXPLAIN_OWNER: Command = {
  name: "explain owner",
  args: "NAMESPACE",
  maxArgs: 1,
  summary: "who owns a namespace, as the sidecars enforce it",
  flags: {
    app: { type: "string", value: "APP", help: "only this app; default: all apps of the namespace of -n" },
    resource: { type: "string", value: "RESOURCE.GROUP", help: "for rules that name resources, for example deployments.apps" },
  },
  async run({ args: [target], flags, output, cluster }: Call) {
    if (target === undefined) throw usageError("name a namespace");
    const namespace = target.replace(/^(ns|namespace|namespaces)\//, "");
    const connected = await cluster();
    const home = namespaceOf(flags, connected.namespace);
    const app = flags.text("app");
    const apps = app === undefined ? await listApps(connected, home) : [await findApp(connected, app, home)];
    if (apps.length === 0) throw failure(`there is no app in namespace ${home}; -n names the namespace of the operator`);
    const asked = await Promise.all(apps.map((each) => askApp(connected, each, namespace, flags.text("resource"))));
    const said = asked.flatMap((each) => each.said);
    const rows = said.map(({ app: of, pod, subset = "-", version, owner, problem }) => [
      of,
      pod,
      subset,
      version === undefined ? "-" : String(version),
      owner ?? problem ?? "it has no routes yet",
    ]);
    output.data(
      "Owners",
      { namespace, answers: said },
      columns([["APP", "POD", "SUBSET", "ROUTE", `OWNER OF ${namespace}`], ...rows]),
    );
    const left = asked.reduce((sum, each) => sum + each.left, 0);
    if (left > 0) output.hint(`${counted(left, "pod")} more not asked`);
    if (said.length === 0) throw failure("no pod of these apps has a sidecar that runs");
    return said.some(({ owner }) => owner !== undefined) ? EXIT.ok : EXIT.failed;
  },
};

async function askApp(cluster: Cluster, { name, namespace: home }: FoundApp, namespace: string, resource: string | undefined) {
  const pods = (await cluster.list(PODS, home, `${INJECTED_LABEL}=${name}`)).filter(isRunning);
  const ask = async (pod: Pod): Promise<Said> => {
    const podName = pod.metadata.name ?? "";
    const who = { app: `${home}/${name}`, pod: podName };
    try {
      const { owner, subset, version } = await askPod(cluster, { namespace: home, name: podName }, namespace, resource);
      return { ...who, subset, version, owner: owner ?? undefined };
    } catch (error) {
      return { ...who, problem: `not asked: ${errorMessage(error)}` };
    }
  };
  return { said: await Promise.all(pods.slice(0, MAX_PODS).map(ask)), left: Math.max(0, pods.length - MAX_PODS) };
}

function askPod(cluster: Cluster, pod: ObjectRef, namespace: string, resource: string | undefined) {
  const [plural = "", ...group] = (resource ?? "").split(".");
  const query = new URLSearchParams({ namespace, group: group.join("."), resource: plural });
  return askSidecar(cluster, pod, `/debug/owner?${query}`, ANSWER);
}

function isRunning({ metadata, status }: Pod): boolean {
  return status?.phase === "Running" && metadata.deletionTimestamp === undefined;
}
