// `ctrlmesh freeze` and `thaw`: the operator of an app stops writing in a namespace while somebody works there, and goes on.
// Invariant: no namespace is frozen by a wrong name.

import { SLICE_APP_LABEL } from "../../api/ownership-slice.ts";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import { isMeshError } from "../../base/errors.ts";
import { NAMESPACES } from "../../kube/client/resources.ts";
import { type FrozenPlace, frozenText } from "../../mesh/ownership/frozen-places.ts";
import { appOf } from "../apps/app-of.ts";
import { applyChanges, patchOf } from "../apps/apply-changes.ts";
import { type AppObject, type FoundApp, frozenIn } from "../apps/apps.ts";
import { listSlices, placesOf } from "../apps/owned-places.ts";
import type { Cluster } from "../frame/cluster.ts";
import { type Call, type Command, type Flags, failure, NAMESPACE_WORDS, nameOf, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { accessFlags, clusterOptions, DRY_RUN } from "../frame/flags.ts";
import { shellLine } from "../frame/output.ts";

/** A namespace inside another cluster. */
type PlaceInside = FrozenPlace & { readonly cluster: string };

const FLAGS: Flags = {
  app: { type: "string", value: "APP", help: "the app whose pods may not write there" },
  cluster: { type: "string", value: "NAME", help: "the namespace is inside this MeshCluster, with interception: Terminate" },
  ...DRY_RUN,
};

export const FREEZE: Command = {
  name: "freeze",
  args: "NAMESPACE",
  maxArgs: 1,
  summary: "an app's operator stops writing in a namespace, until thaw",
  flags: { ...FLAGS, reason: { type: "string", value: "TEXT", help: "for whoever meets the refusals" } },
  async run(call: Call) {
    const { place, key, cluster, app } = await read(call);
    const reason =
      call.flags.text("reason") ?? `frozen with ctrlmesh on ${new Date(call.clock.now()).toISOString().slice(0, 10)}`;
    if (reason.trim() === "") throw usageError("--reason: the text is empty");
    if (place.cluster === undefined) await mustExist(cluster, place.namespace, call);
    else await mustBeInside(cluster, app, { ...place, cluster: place.cluster }, call);
    await applyChanges(call, cluster, [changeOf(app, app.object, { [key]: reason }, `has frozen ${frozenText(place)}`)]);
    for (const before of frozenIn(app).filter((each) => each.key === key))
      call.output.hint(`${frozenText(place)} was frozen before, and one thaw ends both: ${before.reason}`);
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
    const { place, key, cluster, app } = await read(call);
    const frozen = frozenIn(app);
    const found = frozen.filter((each) => each.key === key);
    const names = frozen.map((each) => each.key).join(", ");
    if (found.length === 0)
      throw failure(
        `${app.name} has not frozen ${frozenText(place)}; ${names === "" ? "it has frozen none" : `frozen are: ${names}`}`,
      );
    const changes = found.map(({ object }) => changeOf(app, object, { [key]: null }, `has thawed ${frozenText(place)}`));
    await applyChanges(call, cluster, changes);
    return EXIT.ok;
  },
};

async function read(call: Call) {
  const namespace = nameOf(call.args[0], NAMESPACE_WORDS);
  if (namespace === "") throw usageError("name a namespace");
  const app = call.flags.text("app");
  if (app === undefined || app === "") throw usageError("--app: name the app; ctrlmesh status -A shows all apps");
  const inside = call.flags.text("cluster");
  if (inside === "") throw usageError("--cluster: the name is empty");
  const place: FrozenPlace = { cluster: inside, namespace };
  const key = inside === undefined ? namespace : `${inside}/${namespace}`;
  return { place, key, ...(await appOf({ ...call, args: [app] })) };
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

/** Looks at the MeshCluster, and at the OwnershipSlices for its namespaces. What the user may not read is not checked. */
async function mustBeInside(home: Cluster, app: FoundApp, { cluster, namespace }: PlaceInside, { output }: Call): Promise<void> {
  const name = `MeshCluster ${cluster}`;
  const object = await home.get(MESH_CLUSTERS, { namespace: app.namespace, name: cluster }).catch((error: unknown) => {
    if (isMeshError(error, "NOT_FOUND"))
      throw failure(`there is no ${name} in namespace ${app.namespace}, so nothing was frozen`);
    if (isMeshError(error, "NO_ANSWER")) throw error;
    return undefined;
  });
  const { interception = "Tunnel" } = object?.spec ?? {};
  if (object !== undefined && interception !== "Terminate")
    throw failure(`${name} has interception ${interception}, and freezes need Terminate, so nothing was frozen`);
  const slices = await listSlices(home, app.namespace, `${SLICE_APP_LABEL}=${app.name}`).catch((error: unknown) => {
    if (isMeshError(error, "NO_ANSWER")) throw error;
    return [];
  });
  const inside = slices.flatMap(placesOf).filter((place) => place.cluster === cluster);
  if (inside.length === 0) output.hint(`whether ${name} has a namespace ${namespace} is not known: no OwnershipSlice says it`);
  else if (!inside.some((place) => place.namespace === namespace))
    throw failure(`${name} has no namespace ${namespace}, so nothing was frozen`);
}
