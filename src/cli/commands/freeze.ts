// `ctrlmesh freeze` and `thaw`: the operator of an app stops writing in a namespace while somebody works there, and goes on.
// Invariant: no namespace is frozen by a wrong name.

import { isMeshError } from "../../base/errors.ts";
import { NAMESPACES } from "../../kube/client/resources.ts";
import { appOf } from "../apps/app-of.ts";
import { applyChanges, patchOf } from "../apps/apply-changes.ts";
import { type AppObject, type FoundApp, frozenIn } from "../apps/apps.ts";
import type { Cluster } from "../frame/cluster.ts";
import { type Call, type Command, type Flags, failure, NAMESPACE_WORDS, nameOf, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { accessFlags, clusterOptions, DRY_RUN } from "../frame/flags.ts";
import { shellLine } from "../frame/output.ts";

const FLAGS: Flags = {
  app: { type: "string", value: "APP", help: "the app whose pods may not write there" },
  ...DRY_RUN,
};

export const FREEZE: Command = {
  name: "freeze",
  args: "NAMESPACE",
  maxArgs: 1,
  summary: "an app's operator stops writing in a namespace, until thaw",
  flags: { ...FLAGS, reason: { type: "string", value: "TEXT", help: "for whoever meets the refusals" } },
  async run(call: Call) {
    const { namespace, cluster, app } = await read(call);
    const reason =
      call.flags.text("reason") ?? `frozen with ctrlmesh on ${new Date(call.clock.now()).toISOString().slice(0, 10)}`;
    if (reason.trim() === "") throw usageError("--reason: the text is empty");
    await mustExist(cluster, namespace, call);
    await applyChanges(call, cluster, [changeOf(app, app.object, { [namespace]: reason }, `has frozen namespace ${namespace}`)]);
    for (const before of frozenIn(app).filter((each) => each.namespace === namespace))
      call.output.hint(`namespace ${namespace} was frozen before, and one thaw ends both: ${before.reason}`);
    const wait = shellLine(["ctrlmesh", "wait", app.name, "-n", app.namespace, ...accessFlags(clusterOptions(call.flags))]);
    if (!call.flags.isSet("dry-run")) call.output.hint(`to wait until no write of its pods is under way there: ${wait}`);
    return EXIT.ok;
  },
};

export const THAW: Command = {
  name: "thaw",
  args: "NAMESPACE",
  maxArgs: 1,
  summary: "ends a freeze: the owner may write in the namespace again",
  flags: FLAGS,
  async run(call: Call) {
    const { namespace, cluster, app } = await read(call);
    const frozen = frozenIn(app);
    const found = frozen.filter((each) => each.namespace === namespace);
    const names = frozen.map((each) => each.namespace).join(", ");
    if (found.length === 0)
      throw failure(
        `${app.name} has not frozen namespace ${namespace}; ${names === "" ? "it has frozen none" : `frozen are: ${names}`}`,
      );
    const changes = found.map(({ object }) => changeOf(app, object, { [namespace]: null }, `has thawed namespace ${namespace}`));
    await applyChanges(call, cluster, changes);
    return EXIT.ok;
  },
};

async function read(call: Call) {
  const namespace = nameOf(call.args[0], NAMESPACE_WORDS);
  if (namespace === "") throw usageError("name a namespace");
  const app = call.flags.text("app");
  if (app === undefined || app === "") throw usageError("--app: name the app; ctrlmesh status -A shows all apps");
  return { namespace, ...(await appOf({ ...call, args: [app] })) };
}

function changeOf({ kind, namespace }: FoundApp, { metadata }: AppObject, frozen: object, done: string) {
  return patchOf(kind.resource, { namespace, name: metadata.name ?? "" }, { spec: kind.specWith({ frozen }) }, done);
}

/** Without the right to read namespaces the name is taken as it is. */
async function mustExist(cluster: Cluster, name: string, { output }: Call): Promise<void> {
  try {
    await cluster.get(NAMESPACES, { name });
  } catch (error) {
    if (isMeshError(error, "NOT_FOUND")) throw failure(`there is no namespace ${name}, so nothing was frozen`);
    if (isMeshError(error, "NO_ANSWER")) throw error;
    output.hint(`whether there is a namespace ${name} is not known: you may not read it`);
  }
}
