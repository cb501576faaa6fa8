// Sees what the clients of the model test of watches are shown, and notes what must not be shown at that moment.
import type { ModelClient, Observer } from "./watch-model/client.ts";
import type { SeenEvent } from "./watch-model/memory.ts";
import type { Place, Resource } from "./watch-script.ts";

export interface WatchedClient {
  readonly client: ModelClient;
  readonly resource: Resource;
}

/** What the witness knows of the world. */
export interface WitnessedWorld {
  readonly places: ReadonlyMap<string, Place>;
  /** Something has moved, or moves were lost. */
  mayExpire(): boolean;
  /** The pod is shown a namespace that it has lost, until it has seen its own writes. */
  retains(namespace: string): boolean;
  /** The object is about a cluster of another subset. */
  hides(resource: Resource, key: string): boolean;
}

export class Witness {
  /** All events that clients were shown, in their order. */
  readonly shown: (SeenEvent & { readonly client: ModelClient; readonly resource: Resource })[] = [];
  /** What was shown although it must not be. */
  readonly problems: string[] = [];
  readonly #world: WitnessedWorld;
  readonly #wereMine = new Set<string>();

  constructor(world: WitnessedWorld) {
    this.#world = world;
  }

  /** The places have changed. */
  noteOurs(): void {
    for (const [name, place] of this.#world.places) if (place === "own") this.#wereMine.add(name);
  }

  /** What a client tells. @param watched the client, as soon as it runs */
  observerOf(watched: () => WatchedClient): Observer {
    return {
      onEvent: (event) => {
        this.#checkEvent(watched().resource, event);
        this.shown.push({ ...event, ...watched() });
      },
      onList: (keys) => this.checkList(watched().resource, keys),
      onExpired: () => {
        if (!this.#world.mayExpire()) this.problems.push("a client has to list again, but nothing has moved");
      },
    };
  }

  /** @param keys namespace/name of each object */
  checkList(resource: Resource, keys: readonly string[]): void {
    for (const each of keys) {
      const [namespace = ""] = each.split("/");
      if (!this.#mayShow(namespace)) this.problems.push(`${each} listed, which is ${this.#world.places.get(namespace)}`);
      if (this.#world.hides(resource, each)) this.problems.push(`${each} listed, which is hidden`);
    }
  }

  #checkEvent(resource: Resource, { type, key, namespace, version }: SeenEvent): void {
    if (this.#world.hides(resource, key)) this.problems.push(`${type} ${key} of version ${version} shown, which is hidden`);
    // What has gone may be told of again, if the client may have known it.
    if (this.#mayShow(namespace) || (type === "DELETED" && this.#wereMine.has(namespace))) return;
    this.problems.push(`${type} ${key} of version ${version} shown, which is ${this.#world.places.get(namespace)}`);
  }

  #mayShow(namespace: string): boolean {
    return this.#world.places.get(namespace) === "own" || (this.#world.retains(namespace) && this.#wereMine.has(namespace));
  }
}
