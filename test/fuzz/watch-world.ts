// The world of the model test of watches: an API server with two resources, the proxy, which may be killed, namespaces that move, and
// clients.

import { LOST_MOVES, type StoredMoves } from "../../src/mesh/moves/stored-moves.ts";
import type { ClusterRoute } from "../../src/mesh/ownership/clusters.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import type { Handler } from "../../src/proxy/call/call.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { callOf, keysOf } from "../support/layer-call.ts";
import { type Routes, routes } from "../support/test-routes.ts";
import { createApiServer } from "./watch-model/api-server.ts";
import { type ClientKind, ModelClient } from "./watch-model/client.ts";
import { createHistory, type History } from "./watch-model/history.ts";
import { type SeenBy, startProcess } from "./watch-process.ts";
import {
  APP_NAMESPACE,
  type ClusterOf,
  FAR,
  NAMESPACES,
  type Place,
  type Resource,
  type Script,
  type Start,
} from "./watch-script.ts";
import { type WatchedClient, Witness } from "./watch-witness.ts";

const MAX_CLIENTS = 4;
const PATHS: Readonly<Record<Resource, string>> = { pods: "/api/v1/pods", widgets: "/apis/example.io/v1/widgets" };
const GROUPS: Readonly<Record<Resource, string>> = { pods: "", widgets: "example.io" };
const INFORMER: ClientKind = { begins: "list", takesBookmarks: true, isMetadataOnly: false };
const KINDS: Readonly<Record<Start["kind"], ClientKind>> = {
  lists: INFORMER,
  "lists, no bookmarks": { ...INFORMER, takesBookmarks: false },
  "lists metadata": { ...INFORMER, isMetadataOnly: true },
  "initial events": { ...INFORMER, begins: "initial events" },
  creates: { ...INFORMER, begins: "create" },
};

export class World {
  readonly clock = createFakeClock();
  /** A built-in kind and a custom resource, each with versions of its own. */
  readonly histories: Readonly<Record<Resource, History>> = {
    pods: createHistory("v1", "Pod", 10),
    widgets: createHistory("example.io/v1", "Widget", 1_000),
  };
  readonly apiServer = createApiServer(this.histories);
  readonly clients: WatchedClient[] = [];
  readonly witness: Witness;
  readonly #places: Map<string, Place>;
  readonly #seenBy: SeenBy;
  readonly #moved = new Set<string>();
  /** By resource and key of the object that is about it. */
  readonly #clusters = new Map<string, ClusterOf>();
  readonly #isByNamespace: boolean;
  #hasLostMoves = false;
  #version = 0;
  #proxy;

  constructor({ first, isLarge, isByNamespace }: Omit<Script, "commands">, seenBy: SeenBy) {
    const near = NAMESPACES.map((name, index): [string, Place] => [name, first[index] ?? "own"]);
    const far = FAR.map((name, index): [string, Place] => [name, index % 2 === 0 ? "own" : "theirs"]);
    this.#places = new Map(isLarge ? [...near, ...far] : near);
    const mayExpire = () => this.#moved.size > 0 || this.#clusters.size > 0 || this.#hasLostMoves;
    this.witness = new Witness({
      places: this.#places,
      mayExpire,
      retains: (namespace) => this.#proxy.retains(namespace),
      hides: this.hides,
    });
    this.#seenBy = seenBy;
    this.#isByNamespace = isByNamespace;
    this.#proxy = this.#startProxy(undefined, this.#snapshot());
  }

  get places(): ReadonlyMap<string, Place> {
    return this.#places;
  }

  readonly isMine = (namespace: string) => this.#places.get(namespace) === "own";

  /** True if the object has been the subset's all the time. */
  readonly hasStayed = (resource: Resource, { namespace, key }: { readonly namespace: string; readonly key: string }) =>
    this.isMine(namespace) && !this.#moved.has(namespace) && !this.#clusters.has(`${resource} ${key}`);

  /** True for an object of a cluster that is not the subset's. @param key namespace/name */
  readonly hides = (resource: Resource, key: string) => (this.#clusters.get(`${resource} ${key}`) ?? "own") !== "own";

  /** A namespace that is deleted is empty before. */
  empty(namespace: string): void {
    for (const history of Object.values(this.histories)) for (const name of ["x", "y", "z"]) history.remove(namespace, name);
  }

  move(moves: readonly (readonly [string, Place])[]): void {
    if (moves.length === 0) return;
    for (const [name, place] of moves) {
      this.#places.set(name, place);
      this.#moved.add(name);
    }
    this.#proxy.enforce(this.#snapshot());
  }

  /** Gives the subset the cluster that the object is about, or takes it away. */
  giveCluster(resource: Resource, name: string, to: ClusterOf): void {
    const key = `${resource} ${APP_NAMESPACE}/${name}`;
    if (this.#clusters.get(key) === to) return;
    this.#clusters.set(key, to);
    this.#proxy.enforce(this.#snapshot());
  }

  /** The pod writes an object and is answered after this time. Undefined if the subset does not own it. */
  ownWrite(resource: Resource, namespace: string, takesMs: number): number | undefined {
    if (!this.isMine(namespace) || this.hides(resource, `${namespace}/x`)) return undefined;
    const group = GROUPS[resource];
    const end = this.#proxy.beginWrite(namespace, { group, resource });
    const version = this.histories[resource].write(namespace, "x");
    if (takesMs === 0) end();
    else this.clock.after(takesMs, end);
    return version;
  }

  /** A client that creates an object needs a namespace where it may. */
  start({ resource, kind: name, namespace }: Start): void {
    const kind = KINDS[name];
    const creates = kind.begins === "create";
    if (this.clients.length === MAX_CLIENTS || (creates && !this.isMine(namespace))) return;
    const history = this.histories[resource];
    const created = creates ? ([`${namespace}/z`, history.write(namespace, "z")] as const) : undefined;
    const target = { path: PATHS[resource], kind: history.kind };
    const observer = this.witness.observerOf(() => watched);
    const client = new ModelClient(this.#send, this.clock, target, kind, observer, created);
    const watched: WatchedClient = { client, resource };
    this.clients.push(watched);
  }

  /** A list that no watch follows. */
  async list(resource: Resource): Promise<void> {
    const asked = this.witness.now;
    this.witness.checkList(resource, await keysOf(await this.#send(callOf("GET", PATHS[resource]))), asked);
  }

  /** Kills the proxy's process and starts the next one. Clients come back after a while. */
  killProxy(leaves: "all" | "lost", awayMs: number): void {
    const { stored } = this.#proxy;
    this.#proxy.kill();
    const before = leaves === "lost" ? LOST_MOVES : stored.moves;
    this.#hasLostMoves ||= before === LOST_MOVES;
    this.#proxy = this.#startProxy(before, stored.snapshot);
    // The manager sends the newest routes at once, if they were not stored.
    if (stored.snapshot.version !== this.#version) this.#proxy.enforce(this.#snapshot());
    for (const { client } of this.clients) client.breakAfter(0, awayMs);
  }

  #startProxy(before: StoredMoves | undefined, first: Snapshot) {
    return startProcess(this.clock, this.#seenBy, this.apiServer.handler, before, first, this.#isByNamespace);
  }

  readonly #send: Handler = (call) => this.#proxy.handler(call);

  #snapshot(): Snapshot {
    this.witness.noteOurs();
    const clusters = [...this.#clusters].map(([key, of]) => clusterOf(key, of));
    const app = { namespace: APP_NAMESPACE, name: "app" };
    return routes(++this.#version, routesOf(this.#places), { app, clusters });
  }
}

function clusterOf(key: string, of: ClusterOf): ClusterRoute {
  const [resource = "", name = ""] = key.split(` ${APP_NAMESPACE}/`);
  const objects = [{ group: GROUPS[resource as Resource], resource, name }];
  const owner = of === "theirs" ? "green" : "blue";
  return { name: key, servers: [], drainMs: 0, objects, owner, ...(of === "moves" ? { isFenced: true } : {}) };
}

function routesOf(places: ReadonlyMap<string, Place>): Routes {
  const where = (wanted: (place: Place) => boolean) => [...places].flatMap(([name, place]) => (wanted(place) ? [name] : []));
  return {
    blue: where((place) => place.startsWith("own")),
    defaultSubset: where((place) => place.startsWith("theirs")),
    fenced: where((place) => place.endsWith("moves")),
  };
}
