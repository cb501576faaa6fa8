// Models of clients. An informer, like client-go's reflector, lists or watches with initial events, continues from the last version that it
// read, and starts again upon a 410. A creator, like client-go's RetryWatcher, creates an object, watches from its version without a list
// before it, and ends at a 410. Connections break at any moment.
import { type Clock, sleep } from "../../../src/base/clock.ts";
import type { Handler } from "../../../src/proxy/call/call.ts";
import { textOf } from "../../support/layer-call.ts";
import type { Meta, WireEvent } from "./answers.ts";
import { createConnection } from "./connection.ts";
import { apply, Memory, type SeenEvent } from "./memory.ts";

/** client-go's reflector waits for this long at least before it lists again. */
const BACKOFF_MS = 800;

export interface ClientKind {
  /** How the client gets to know what there is. */
  readonly begins: "list" | "initial events" | "create";
  readonly takesBookmarks: boolean;
  readonly isMetadataOnly: boolean;
}

/** A resource. */
export interface Target {
  readonly path: string;
  readonly kind: string;
}

/** Is told what the client is shown, before it takes effect. */
export interface Observer {
  /** A number that grows whenever something moves. */
  readonly now: number;
  /** @param asked when the client has asked for what there is; undefined for news */
  onEvent(event: SeenEvent, asked: number | undefined): void;
  /** @param keys namespace/name of each object. @param asked when the client has asked */
  onList(keys: readonly string[], asked: number): void;
  onExpired(): void;
}

/** The initial events of a watch so far. */
interface Initial {
  readonly state: Map<string, number>;
  readonly asked: number;
}

export class ModelClient {
  readonly kind: ClientKind;
  readonly memory: Memory;
  readonly #send: Handler;
  readonly #clock: Clock;
  readonly #target: Target;
  readonly #observer: Observer;
  #connection = createConnection();
  /** The connection breaks after this many events. */
  #left = Number.POSITIVE_INFINITY;
  #leftOfNext = Number.POSITIVE_INFINITY;
  #awayMs = 0;
  #isOver = false;
  /** The process has just begun. */
  #isNew = true;

  /** @param created what a creator has created */
  constructor(
    send: Handler,
    clock: Clock,
    target: Target,
    kind: ClientKind,
    observer: Observer,
    created?: readonly [key: string, version: number],
  ) {
    this.kind = kind;
    this.memory = new Memory(created);
    this.#send = send;
    this.#clock = clock;
    this.#target = target;
    this.#observer = observer;
    // Later, since whoever starts the client does not have it yet.
    queueMicrotask(() => void this.#run());
  }

  /** True for a creator that got a 410. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Breaks the connection of the watch after this many more events. The client stays away for that time. */
  breakAfter(events: number, awayMs: number): void {
    this.#left = events;
    this.#awayMs = awayMs;
    if (events === 0) this.#connection.break();
  }

  /** Breaks the connection of the next watch after this many events. */
  breakNextAfter(events: number): void {
    this.#leftOfNext = events;
  }

  /** From this call on, the client's connections do not break by themselves. */
  stay(): void {
    this.#left = Number.POSITIVE_INFINITY;
    this.#leftOfNext = Number.POSITIVE_INFINITY;
    this.#awayMs = 0;
  }

  /** An informer's process is restarted. */
  forget(): void {
    if (this.kind.begins === "create") return;
    this.memory.position = undefined;
    this.memory.state.clear();
    this.#isNew = true;
    this.#connection.break();
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      const knowsNothing = this.memory.position === undefined;
      if (knowsNothing && !this.#isNew) await sleep(this.#clock, BACKOFF_MS);
      this.#isNew = false;
      this.#connection = createConnection();
      this.#awayMs = 0;
      await (knowsNothing && this.kind.begins === "list" ? this.#list() : this.#watch());
      if (this.#awayMs > 0) await sleep(this.#clock, this.#awayMs);
    }
  }

  async #list(): Promise<void> {
    const asked = this.#observer.now;
    const reply = await this.#connection.get(this.#send, this.#target.path, this.#accept("List"));
    if (reply === undefined) return;
    if (reply.status !== 200) throw new Error(`list: ${reply.status}`);
    const list = JSON.parse(await textOf(reply)) as { kind: string; metadata: Meta; items: { metadata: Meta }[] };
    this.#checkKind(list.kind, "List");
    this.#observer.onList(
      list.items.map(({ metadata }) => keyOf(metadata)),
      asked,
    );
    const objects = list.items.map(({ metadata }) => [keyOf(metadata), Number(metadata.resourceVersion)] as const);
    this.memory.replace(Number(list.metadata.resourceVersion), objects);
  }

  async #watch(): Promise<void> {
    const { position } = this.memory;
    const initial = position === undefined ? { state: new Map<string, number>(), asked: this.#observer.now } : undefined;
    const from = initial ? "sendInitialEvents=true&resourceVersionMatch=NotOlderThan" : `resourceVersion=${position}`;
    this.#left = this.#leftOfNext;
    this.#leftOfNext = Number.POSITIVE_INFINITY;
    const target = `${this.#target.path}?watch=1&allowWatchBookmarks=${this.kind.takesBookmarks}&${from}`;
    const reply = await this.#connection.get(this.#send, target, this.#accept(""));
    if (reply !== undefined) await this.#connection.read(reply, (event) => this.#read(event, initial));
  }

  /** @param initial the initial events so far. If they do not come to their end, they are read again. */
  #read({ type, object }: WireEvent, initial: Initial | undefined): void {
    if (type === "ERROR") {
      this.#expire(object.code);
      return;
    }
    this.#checkKind(object.kind, "");
    const { metadata } = object;
    const version = Number(metadata.resourceVersion);
    const event = { type, key: keyOf(metadata), namespace: metadata.namespace, version };
    const isNews = initial === undefined || this.memory.position !== undefined;
    if (type !== "BOOKMARK") this.#observer.onEvent(event, isNews ? undefined : initial.asked);
    if (isNews) {
      if (type !== "BOOKMARK") this.memory.take(event);
      this.memory.goOn(version);
    } else if (type !== "BOOKMARK") apply(event, initial.state);
    else if (metadata.annotations?.["k8s.io/initial-events-end"] === "true") this.memory.replace(version, initial.state);
    this.#left--;
    if (this.#left <= 0) this.#connection.break();
  }

  #expire(code: number | undefined): void {
    if (code !== 410) throw new Error(`watch: ${code}`);
    this.#observer.onExpired();
    this.memory.position = undefined;
    this.#isOver = this.kind.begins === "create";
    this.#connection.break();
  }

  #accept(suffix: string): string {
    const plain = "application/json";
    return this.kind.isMetadataOnly ? `${plain};as=PartialObjectMetadata${suffix};g=meta.k8s.io;v=v1` : plain;
  }

  #checkKind(kind: string, suffix: string): void {
    const expected = `${this.kind.isMetadataOnly ? "PartialObjectMetadata" : this.#target.kind}${suffix}`;
    if (kind !== expected) throw new Error(`${kind} instead of ${expected}`);
  }
}

function keyOf({ namespace, name }: Meta): string {
  return `${namespace}/${name}`;
}
