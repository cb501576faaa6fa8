// `ctrlmesh explain owner`: who owns a namespace, as the sidecars enforce it. Invariant: no owner is computed here:
// each answer is that of a sidecar, with the version of its routes. Below them stand the rules that match by the spec.
import { z } from "zod";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import { askSidecarsOf } from "../apps/app-sidecars.ts";
import { type FoundApp, findApp, listApps } from "../apps/apps.ts";
import { clusterState, listDecisions, listMeshClusters } from "../apps/cluster-states.ts";
import { type Call, type Command, type FlagValues, failure, NAMESPACE_WORDS, nameOf, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { accessFlags, clusterOptions, namespaceOf } from "../frame/flags.ts";
import { type Columns, printTable } from "../frame/table.ts";

const ANSWER = z.looseObject({
  owner: z.string().nullable(),
  subset: z.string().optional(),
  frozen: z.string().optional(),
  version: z.number().optional(),
  /** Of a cluster: what a connection of the pod gets now. */
  access: z.string().optional(),
});

const CLUSTER_WORDS = [MESH_CLUSTERS.resource, "meshcluster", "mcl"];

export const EXPLAIN_OWNER: Command = {
  name: "explain owner",
  args: "NAMESPACE|meshcluster/NAME[/NAMESPACE]",
  maxArgs: 1,
  summary: "who owns a namespace, or another cluster or a namespace of it, as the sidecars enforce it",
  flags: {
    app: { type: "string", value: "APP", help: "only this app; default: all apps of the namespace of -n" },
    resource: { type: "string", value: "RESOURCE.GROUP", help: "for rules that name resources, for example deployments.apps" },
  },
  async run(call: Call) {
    const { flags, output, cluster } = call;
    const [target] = call.args;
    const [clusterName, inside] = nameIn(target, CLUSTER_WORDS)?.split(/\/(.*)/s) ?? [];
    const place = inside ?? clusterName ?? nameOf(target, NAMESPACE_WORDS);
    // A namespace with such a name is namespace/NAME.
    const isName = clusterName !== undefined || !(place.includes("/") || CLUSTER_WORDS.includes(target ?? ""));
    if (place === "" || !isName) throw usageError("name a namespace, or another cluster as meshcluster/NAME");
    const connected = await cluster();
    const home = namespaceOf(flags, connected.namespace);
    const app = flags.text("app");
    const apps = app === undefined ? await listApps(connected, home) : [await findApp(connected, app, home)];
    if (apps.length === 0) throw failure(`there is no app in namespace ${home}; -n names the namespace of the operator`);
    const query = clusterName === undefined ? namespaceQuery(place, flags) : clusterQuery(clusterName, inside, flags);
    const asked = await askSidecarsOf(connected, apps, { path: `/debug/owner?${query}`, schema: ANSWER }, output);
    const items = asked.map(({ app: of, pod, answer, problem }) => ({
      app: of,
      pod,
      subset: answer?.subset,
      version: answer?.version,
      owner: answer?.owner ?? undefined,
      access: answer?.access,
      frozen: answer?.frozen,
      problem,
    }));
    const { fields, notes } = await (clusterName === undefined
      ? namespaceNotes(call, apps, place)
      : clusterNotes(call, apps, { namespace: home, name: clusterName }));
    const owned: Columns<(typeof items)[number]> = {
      APP: ({ app: of }) => of,
      POD: ({ pod }) => pod,
      SUBSET: ({ subset }) => subset,
      ROUTE: ({ version }) => version,
      [`OWNER OF ${place}`]: ({ owner, frozen, problem }) =>
        frozen === undefined ? (owner ?? problem ?? "it has no routes yet") : `${owner}, frozen: ${frozen}`,
    };
    printTable(output, {
      kind: "OwnerAnswerList",
      items,
      fields,
      notes,
      columns: clusterName === undefined ? owned : { ...owned, "CONNECT NOW": ({ access }) => access },
      ifNone: "",
    });
    if (items.every(({ owner }) => owner === undefined)) throw failure("no sidecar has named an owner");
    return EXIT.ok;
  },
};

/** Undefined if the target is of no such kind. */
function nameIn(target: string | undefined, kinds: readonly string[]): string | undefined {
  const name = nameOf(target, kinds);
  return name === target || target === undefined ? undefined : name;
}

function namespaceQuery(namespace: string, flags: FlagValues): URLSearchParams {
  const [plural = "", ...group] = (flags.text("resource") ?? "").split(".");
  return new URLSearchParams({ namespace, group: group.join("."), resource: plural });
}

function clusterQuery(name: string, inside: string | undefined, flags: FlagValues): URLSearchParams {
  if (inside !== undefined) return new URLSearchParams([...namespaceQuery(inside, flags), ["cluster", name]]);
  if (flags.text("resource") !== undefined) throw usageError("--resource: a cluster has one owner for all resources");
  return new URLSearchParams({ cluster: name });
}

interface Notes {
  /** Of the document. */
  readonly fields: object;
  readonly notes: readonly string[];
}

// The rules of the manager are loaded only here, as for `plan`.
async function namespaceNotes({ cluster, output }: Call, apps: readonly FoundApp[], namespace: string): Promise<Notes> {
  const { explainedApps, explainedLines } = await import("../plan/explain-rules.ts");
  const explained = await explainedApps(await cluster(), apps, namespace, output);
  return { fields: { namespace, explained }, notes: explained.flatMap((each) => explainedLines(each, "namespace")) };
}

async function clusterNotes({ cluster, flags, clock }: Call, apps: readonly FoundApp[], ref: Ref): Promise<Notes> {
  const { clusterStatusLines, explainedClusters } = await import("../plan/explain-clusters.ts");
  const { explainedLines } = await import("../plan/explain-rules.ts");
  const connected = await cluster();
  const [objects, decisions] = await Promise.all([
    listMeshClusters(connected, ref.namespace),
    listDecisions(
      connected,
      ref.namespace,
      apps.flatMap(({ objects: of }) => of),
    ),
  ]);
  const object = objects.find(({ metadata }) => metadata.name === ref.name);
  if (object === undefined) throw failure(`there is no MeshCluster ${ref.name} in namespace ${ref.namespace}`);
  const explained = explainedClusters(apps, { objects, decisions }, ref.name);
  const status = clusterStatusLines(object, accessFlags(clusterOptions(flags)), clock.now());
  const { conditions, waitingOn } = clusterState(object);
  return {
    fields: { cluster: ref.name, explained, conditions, waitingOn },
    notes: [...explained.flatMap((each) => explainedLines(each, "MeshCluster")), ...status],
  };
}

interface Ref {
  readonly namespace: string;
  readonly name: string;
}
