// What `ctrlmesh labels remove` asks before it removes anything, and what it prints. Invariant: nothing is removed that the
// manager would write again.
import { SHARDING_CONFIGS } from "../../api/resources.ts";
import { errorMessage, isMeshError } from "../../base/errors.ts";
import { type Resource, resourceName } from "../../kube/client/resource.ts";
import { MUTATING_ADMISSION_POLICIES } from "../../kube/client/resources.ts";
import type { GroupResource } from "../../kube/types.ts";
import { appOf } from "../apps/app-of.ts";
import type { FoundApp } from "../apps/apps.ts";
import { findResource } from "../apps/find-resource.ts";
import type { Cluster } from "../frame/cluster.ts";
import { type Call, failure } from "../frame/command.ts";
import { EXIT, type ExitCode } from "../frame/exit.ts";
import { accessFlags, clusterOptions } from "../frame/flags.ts";
import { counted, shellLine } from "../frame/output.ts";
import { orNothing } from "../frame/read-answer.ts";
import { askingConfigs, kubectlWords, labelledKinds, policyOf } from "./labelled-kinds.ts";
import { countLabelled, type Removed, removeLabels } from "./remove-labels.ts";

/** The most objects that are named. */
const MAX_NAMED = 10;

interface Outcome extends Partial<Removed> {
  readonly resource: string;
  /** Why its labels were not touched. */
  readonly problem?: string;
}

export async function runLabelsRemove(call: Call): Promise<ExitCode> {
  const { flags, output } = call;
  const isDry = flags.isSet("dry-run");
  const { cluster, app } = await appOf(call);
  if (app.kind.resource.kind !== SHARDING_CONFIGS.kind)
    throw failure(`${app.name} is a ${app.kind.resource.kind}: only a ${SHARDING_CONFIGS.kind} labels objects`);
  const asking = askingConfigs(await cluster.list(SHARDING_CONFIGS));
  const outcomes: Outcome[] = [];
  for (const of of labelledKinds(app.objects)) {
    const outcome = await removeFrom(call, cluster, app, of, asking.get(resourceName(of)));
    outcomes.push(outcome);
    for (const line of hintsOf(outcome)) output.hint(line);
    const access = [...(isDry ? ["--dry-run=server"] : []), ...accessFlags(clusterOptions(flags))];
    if (outcome.problem === undefined)
      for (const words of kubectlWords(of, access)) output.hint(`with kubectl: ${shellLine(words)}`);
  }
  const items = outcomes.map(({ resource, removed = 0, failures, problem }) => ({
    resource,
    removed,
    failures: failures === undefined ? [] : [...failures].map(([object, message]) => ({ object, message })),
    problem,
  }));
  output.data(
    "LabelRemoval",
    { app: app.name, dryRun: isDry, items },
    outcomes.map((outcome) => lineOf(outcome, isDry)),
  );
  return outcomes.some(({ problem, failures }) => problem !== undefined || (failures?.size ?? 0) > 0) ? EXIT.failed : EXIT.ok;
}

/** @param askedBy the config that wants the labels now */
async function removeFrom(
  { flags, output }: Call,
  cluster: Cluster,
  app: FoundApp,
  of: GroupResource,
  askedBy: string | undefined,
): Promise<Outcome> {
  const resource = resourceName(of);
  try {
    if (askedBy !== undefined) return { resource, problem: wantedText(app, askedBy) };
    const policy = policyOf(of);
    if (await mayBeThere(cluster, policy))
      return { resource, problem: `the policy ${policy} still sets the labels: wait until the manager has removed it` };
    const found = await findResource(cluster, resource);
    if (!(await cluster.may("patch", of.resource, of.group)))
      return { resource, problem: `you may not patch ${resource} in all namespaces` };
    const { isNamespaced: namespaced, ...rest } = found;
    const target: Resource = { ...rest, namespaced };
    if (flags.isSet("dry-run")) return { resource, ...(await countLabelled(cluster, target)) };
    return { resource, ...(await removeLabels(cluster, target, (count) => output.hint(`${resource}: ${count} so far`))) };
  } catch (error) {
    if (isMeshError(error, "NO_ANSWER")) throw error;
    return { resource, problem: errorMessage(error) };
  }
}

function wantedText({ objects, namespace, name }: FoundApp, askedBy: string): string {
  const isOwn = objects.some(({ metadata }) => `${metadata.namespace}/${metadata.name}` === askedBy);
  if (!isOwn) return `${SHARDING_CONFIGS.kind} ${askedBy} asks for them too, and the labels are the same for both`;
  const patch = ["kubectl", "patch", "shardingconfigs.ctrlmesh.kusionstack.io", askedBy.split("/")[1] ?? name, "-n", namespace];
  const off = shellLine([...patch, "--type=merge", "-p", '{"spec":{"labelObjects":false}}']);
  return `${SHARDING_CONFIGS.kind} ${askedBy} asks for the labels, which would come back. First: ${off}`;
}

/** Whoever may not see policies learns from the labels that come back. */
async function mayBeThere(cluster: Cluster, policy: string): Promise<boolean> {
  return (await orNothing(cluster.get(MUTATING_ADMISSION_POLICIES, { name: policy }))) !== undefined;
}

function hintsOf({ resource, failures }: Outcome): string[] {
  if (failures === undefined || failures.size === 0) return [];
  const named = [...failures].slice(0, MAX_NAMED).map(([object, message]) => `${resource} ${object}: ${message}`);
  return failures.size > MAX_NAMED ? [...named, `and ${failures.size - MAX_NAMED} more`] : named;
}

function lineOf({ resource, removed = 0, failures, problem }: Outcome, isDry: boolean): string {
  if (problem !== undefined) return `${resource}: not touched: ${problem}`;
  const left = failures === undefined || failures.size === 0 ? "" : `, ${failures.size} still have labels`;
  return `${resource}: removed from ${counted(removed, "object")}${left}${isDry ? " (dry run: nothing was changed)" : ""}`;
}
