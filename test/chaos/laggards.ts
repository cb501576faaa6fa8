// What is not as it was asked for: Foos whose last edit was not reconciled, or not by their owner, ConfigMaps that say something else,
// and a VirtualApp that does not say that it is done. Empty: no work was lost, and everything has converged.
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { VIRTUAL_APPS } from "../../src/manager/resources.ts";
import { FOOS } from "../support/mesh.ts";
import { APP, type ChaosWorld } from "./world.ts";

const LIMITS = { timeoutMs: 5_000 };
const MAX_NAMED = 10;

export interface Laggards {
  /** What the VirtualApp says of ownership: the mesh's part. */
  readonly mesh: readonly string[];
  /** What the operators have not done yet. */
  readonly work: readonly string[];
}

/** Everything that lags, in words. @throws Error if the API server cannot be asked */
export async function laggards(world: ChaosWorld): Promise<Laggards> {
  const { client } = world.mesh;
  const [foos, maps, app] = await Promise.all([
    client.list(FOOS, LIMITS),
    client.list(CONFIG_MAPS, LIMITS),
    client.get(VIRTUAL_APPS, APP, LIMITS),
  ]);
  const messages = new Map(maps.items.map(({ metadata, data }) => [`${metadata.namespace}/${metadata.name}`, data?.message]));
  const work: string[] = [];
  for (const { metadata, spec, status } of foos.items) {
    const { namespace = "", name, generation } = metadata;
    const by = status?.reconciledBy ?? "";
    const owner = world.ledger.ownerOf(namespace);
    if (status?.observedGeneration !== generation)
      work.push(
        `${namespace}/${name}: generation ${generation}, observed ${status?.observedGeneration ?? "none"} by ${by || "nobody"}`,
      );
    else if (world.subsetOf(by) !== owner)
      work.push(`${namespace}/${name}: reconciled by ${by || "nobody"}, owned by "${owner}"`);
    else if (messages.get(`${namespace}/${name}-data`) !== spec?.message)
      work.push(`${namespace}/${name}-data: not the Foo's message`);
  }
  const mesh: string[] = [];
  const { conditions = [], observedGeneration } = app.status ?? {};
  if (observedGeneration !== app.metadata.generation) mesh.push("the VirtualApp's status is of an older generation");
  for (const type of ["Converged", "Ready"]) {
    const condition = conditions.find((one) => one.type === type);
    if (condition?.status !== "True")
      mesh.push(`${type} is ${condition?.status ?? "absent"}: ${condition?.reason} ${condition?.message}`);
  }
  const more = work.length - MAX_NAMED;
  return { mesh, work: more > 0 ? [...work.slice(0, MAX_NAMED), `and ${more} more`] : work };
}
