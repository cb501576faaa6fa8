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
  /** When each namespace was the subset's last. */
  readonly #lastMine = new Map<string, number>();
  #now = 0;

  constructor(world: WitnessedWorld) {
    this.#world = world;
  }

  /** The places have changed. */
  noteOurs(): void {
    this.#now++;
    for (const [name, place] of this.#world.places) if (place === "own") this.#lastMine.set(name, this.#now);
  }

  /** What a client tells. @param watched the client, as soon as it runs */
  observerOf(watched: () => WatchedClient): Observer {
    const now = () => this.#now;
    return {
      get now() {
        return now();
      },
      onEvent: (event, asked) => {
        this.#checkEvent(watched().resource, event, asked);
        this.shown.push({ ...event, ...watched() });
      },
      onList: (keys, asked) => this.checkList(watched().resource, keys, asked),
      onExpired: () => {
        if (!this.#world.mayExpire()) this.problems.push("a client has to list again, but nothing has moved");
      },
    };
  }

  get now(): number {
    return this.#now;
  }

  /** @param keys namespace/name of each object. @param asked when the list was requested */
  checkList(resource: Resource, keys: readonly string[], asked: number): void {
    for (const each of keys) {
      const [namespace = ""] = each.split("/");
      if (!this.#mayList(namespace, asked)) this.problems.push(`${each} listed, which is ${this.#world.places.get(namespace)}`);
      if (this.#world.hides(resource, each)) this.problems.push(`${each} listed, which is hidden`);
    }
  }

  #checkEvent(resource: Resource, { type, key, namespace, version }: SeenEvent, asked: number | undefined): void {
    if (this.#world.hides(resource, key)) this.problems.push(`${type} ${key} of version ${version} shown, which is hidden`);
    // What has gone may be told of again, if the client may have known it.
    if (this.#mayShow(namespace) || (type === "DELETED" && this.#lastMine.has(namespace))) return;
    if (asked !== undefined && this.#mayList(namespace, asked)) return;
    this.problems.push(`${type} ${key} of version ${version} shown, which is ${this.#world.places.get(namespace)}`);
  }

  #mayShow(namespace: string): boolean {
    return this.#world.places.get(namespace) === "own" || (this.#world.retains(namespace) && this.#lastMine.has(namespace));
  }

  /**
   * The proxy reads the beginning of a list before it answers. So the list may show what was lost meanwhile, as if it had been on its way
   * then. Nobody keeps that: marks of moves since the request are at its version, so a watch from there tells of them.
   */
  #mayList(namespace: string, asked: number): boolean {
    return this.#mayShow(namespace) || (this.#lastMine.get(namespace) ?? -1) >= asked;
  }
}
