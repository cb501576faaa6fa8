// What is kept through a script of the mesh tests while nothing is about it: what a pod has, as long as the wish gives it the same and
// nobody touches the pod ("nothing is stopped that nothing is about"), and who owns what under a pause. Judged by the wish alone.
import { PLACES, type Rights } from "./mesh-checks.ts";
import type { MeshWorld } from "./mesh-model.ts";
import { ownerOf, type Rules, usedSubsets } from "./mesh-objects.ts";
import type { Desired } from "./mesh-run.ts";

export type Promises = ReturnType<typeof createPromises>;

export function createPromises(world: MeshWorld, desired: Desired) {
  /** By pod's uid: the places that it is to have. */
  const kept = new Map<string, { readonly name: string; readonly subset: string; readonly at: Set<number> }>();
  let ownersThen: readonly (string | undefined)[] = [];
  /** By place, under a pause that began at rest. */
  let owners: (string | undefined)[] | undefined;

  const wishedOwner = (at: number): string | undefined => {
    const place = PLACES[at];
    if (place === undefined || !world.hasNamespace(place.namespace)) return undefined;
    return ownerOf(desired.rules, world.cluster.teamOf(place.namespace), place.resource, place.labels);
  };
  const familyOf = ({ sharded }: Rules) => JSON.stringify(sharded);
  const family = familyOf(desired.rules);
  const hasShape = () =>
    familyOf(desired.rules) !== family ||
    desired.rules.onlyConfigMaps ||
    desired.rules.tiers !== undefined ||
    (desired.rules.publics ?? []).length > 0;
  const subsetOf = (name: string): string => {
    const { subset = "" } = world.cluster.wanted.get(name) ?? {};
    return usedSubsets(desired.rules).includes(subset) ? subset : "";
  };
  const releaseAll = () => {
    kept.clear();
    owners = undefined;
  };

  const expectKept = () => {
    if (kept.size === 0) return;
    if (hasShape()) return kept.clear(); // resources that move as a whole stop for it
    for (const proxy of world.proxies.values()) {
      const promise = kept.get(proxy.uid);
      if (promise === undefined) continue;
      if (subsetOf(proxy.name) !== promise.subset) {
        kept.delete(proxy.uid); // its labels name a subset that there was not, or is not any more
        continue;
      }
      const rights = world.rightsOf(proxy);
      for (const at of promise.at) {
        if (wishedOwner(at) !== ownersThen[at]) promise.at.delete(at);
        else if (rights[at]?.length === 0)
          throw new Error(`${promise.name} has ${PLACES[at]?.text} no more, though nothing is about it`);
      }
    }
  };
  const expectPaused = () => {
    if (owners === undefined) return;
    const used = ["", ...usedSubsets(desired.rules)];
    const proxies = [...world.proxies.values()];
    // With the last pod that has something, and with a subset, what the pause keeps is gone.
    const isOver = !desired.rules.paused || !proxies.some((proxy) => hasOwn(proxy.current));
    if (isOver || owners.some((owner) => owner !== undefined && !used.includes(owner))) {
      owners = undefined;
      return;
    }
    for (const proxy of proxies) {
      const rights = world.rightsOf(proxy);
      for (const [at, owner] of owners.entries()) {
        if (owner === undefined) continue;
        if (!world.hasNamespace(PLACES[at]?.namespace ?? "")) owners[at] = undefined;
        else if (rights[at]?.some(([subset, right]) => right === "alone" && subset !== owner))
          throw new Error(`${PLACES[at]?.text} moves from "${owner}" to ${proxy.name} though the app is paused`);
      }
    }
  };

  return {
    releaseAll,
    /** What happens to the pod is about it. */
    release(name: string) {
      const proxy = world.proxies.get(name);
      if (proxy !== undefined) kept.delete(proxy.uid);
    },
    /** From now on every pod keeps what it has. */
    keepWhatIs() {
      if (hasShape()) return;
      ownersThen = PLACES.map((_, at) => wishedOwner(at));
      for (const proxy of world.proxies.values()) {
        const rights = world.rightsOf(proxy);
        const at = PLACES.flatMap((_, index) => (isHeld(rights[index], ownersThen[index]) ? [index] : []));
        kept.set(proxy.uid, { name: proxy.name, subset: subsetOf(proxy.name), at: new Set(at) });
      }
    },
    /** The world is at rest and paused: from now on nothing moves. */
    keepOwners() {
      owners = PLACES.map((_, at) => {
        const rights = [...world.proxies.values()].flatMap((proxy) => world.rightsOf(proxy)[at] ?? []);
        return rights.find(([, right]) => right === "alone")?.[0];
      });
    },
    expect() {
      expectKept();
      expectPaused();
    },
  };
}

function isHeld(rights: Rights[number] = [], owner: string | undefined): boolean {
  return rights.some(([subset]) => subset === owner || owner === "*");
}

function hasOwn(snapshot: { readonly table: { readonly rules: readonly { readonly kind: string }[] } } | undefined): boolean {
  return snapshot !== undefined && !snapshot.table.rules.some((rule) => rule.kind === "fence");
}
