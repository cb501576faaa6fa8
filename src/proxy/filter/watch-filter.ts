// Filters the events of one watch by the routes in force. Invariant: the bytes that `filter` returns hold
// only objects that this pod may read at that instant.
import type { Clock } from "../../base/clock.ts";
import {
  type Encoding,
  filterTableFrame,
  type ItemMeta,
  type ReadOptions,
  readFrame,
  type WatchFrame,
} from "../../kube/codec/codec.ts";
import { parseResourceVersion } from "../../kube/resource-version.ts";
import type { MoveLog } from "../../mesh/moves/move-log.ts";
import type { ResourceLog } from "../../mesh/moves/resource-log.ts";
import { isHiddenBy } from "../../mesh/ownership/plan-query.ts";
import { governingPlace, isOwned, type ResourceView, readViewOf } from "../../mesh/ownership/snapshot.ts";
import type { Session } from "../session/session.ts";
import { decideEvent } from "./event-decision.ts";
import { hidesNamespaces, isAllOwned, type SentRequest } from "./sent-request.ts";
import type { EventCounters, PlanCounters, StreamMetrics } from "./stream-metrics.ts";

/** Bytes to send; "relist" drops the frame and makes the client list again; "wait": call `filter` later. */
type FrameOutcome = Uint8Array | "drop" | "relist" | "wait";

export interface WatchFilterDeps {
  readonly clock: Clock;
  readonly session: Session;
  readonly moves: MoveLog;
  readonly metrics: StreamMetrics;
}

const VERSIONS = { versions: true };
const LABELS_AND_VERSIONS = { labels: true, versions: true };

export class WatchFilter {
  readonly #encoding: Encoding;
  readonly #request: SentRequest;
  readonly #deps: WatchFilterDeps;
  readonly #events: EventCounters;
  readonly #served: PlanCounters | undefined;
  /** Reports that the API server ignores the server-side filter. Undefined once it has been called. */
  #reportIgnored: (() => void) | undefined;
  #isFirst = true;
  /** The version of the last event that was shown or dropped. */
  #version: bigint | undefined;
  /** Versions grow from one event to the next. */
  #isInOrder: boolean;

  constructor(encoding: Encoding, request: SentRequest, deps: WatchFilterDeps) {
    this.#encoding = encoding;
    this.#request = request;
    this.#deps = deps;
    this.#events = deps.metrics.eventsOf(request.collection);
    this.#served = request.plan === undefined ? undefined : deps.metrics.servedBy(request.plan);
    this.#reportIgnored = hidesNamespaces(request.serverFilter) ? request.onIgnored : undefined;
    this.#version = request.version;
    this.#isInOrder = request.version !== undefined;
  }

  /**
   * The client has been shown all objects of the subset up to this version, and nothing later. Undefined
   * before the initial events are over, and after an event that was not read.
   */
  get version(): bigint | undefined {
    return this.#view().isMoving ? undefined : this.#version;
  }

  received(bytes: number): void {
    this.#served?.read.inc(bytes);
  }

  /** Throws `CODEC_MALFORMED`. */
  filter(frame: Uint8Array): FrameOutcome {
    const view = this.#view();
    // These frames are not read, so their versions are not known.
    if (view.ownsAll) {
      this.#version = undefined;
      this.#log.give(undefined);
      return this.#show(frame);
    }
    // A 410 follows. Until then no bookmark may say that the client has seen everything.
    if (view.isMoving) return "drop";
    const options = view.labelFilter === undefined ? VERSIONS : LABELS_AND_VERSIONS;
    const event = readFrame(this.#encoding, frame, options);
    const isWhole = isAllOwned(view, this.#request.collection);
    const outcome = isWhole ? this.#show(frame) : this.#outcomeOf(view, frame, event, options);
    if (outcome !== "wait") this.#noteVersion(event, outcome instanceof Uint8Array);
    return outcome;
  }

  #outcomeOf(view: ResourceView, frame: Uint8Array, event: WatchFrame, options: ReadOptions): FrameOutcome {
    if (event.type === "BOOKMARK" || event.type === "ERROR") return this.#show(frame);
    const { action, leftOut } = decideEvent(view, event, (namespace) => this.#isGivenUp(namespace, event.type), this.#isFirst);
    switch (action.kind) {
      case "show":
        return this.#show(frame);
      case "show-part":
        this.#leaveOut(leftOut);
        return this.#show(filterTableFrame(frame, (meta) => isOwned(view, meta), options));
      case "relist":
        this.#served?.dropped.inc();
        this.#events.dropped.value++;
        return "relist";
      case "drop":
        this.#drop(event, leftOut);
        return "drop";
      case "hold":
        // The last event of a deleted namespace: without it the client would keep the object for ever.
        if (event.type === "DELETED" && action.namespaces.every((namespace) => this.#isDeparted(namespace)))
          return this.#show(frame);
        this.#events.held.value++;
        return "wait";
      default:
        return action satisfies never;
    }
  }

  // The initial events are ADDED, in any order, and only a bookmark says for sure that they are over. The
  // first bookmark of a WatchList is `k8s.io/initial-events-end` (k8s.io/apiserver, cache_watcher.go): the
  // client waits for it, and no later watch would send it.
  #noteVersion({ type, objects, isTable }: WatchFrame, isShown: boolean): void {
    if (type === "ERROR") return;
    this.#isInOrder ||= type === "BOOKMARK";
    const version = isTable ? undefined : parseResourceVersion(objects[0]?.resourceVersion);
    this.#version = this.#isInOrder ? version : undefined;
    if (isShown) this.#log.give(version);
  }

  unknownIn(frame: Uint8Array): string[] {
    const view = this.#view();
    const { objects } = readFrame(this.#encoding, frame);
    const names = new Set(objects.map((object) => governingPlace(view.group, view.resource, object)));
    return [...names].filter((namespace) => view.ownershipOf(namespace) === "unknown");
  }

  /** Ends the wait for the owners of the frame's namespaces: their objects count as left out. */
  giveUp(frame: Uint8Array): void {
    this.#leaveOut(this.unknownIn(frame));
  }

  #show(bytes: Uint8Array): Uint8Array {
    this.#isFirst = false;
    this.#events.forwarded.value++;
    this.#served?.sent.inc(bytes.length);
    return bytes;
  }

  #drop({ objects }: WatchFrame, leftOut: readonly string[]): void {
    this.#isFirst = false;
    this.#served?.dropped.inc();
    if (this.#reportIgnored !== undefined) this.#checkIgnored(objects);
    this.#leaveOut(leftOut);
    this.#events[leftOut.length > 0 ? "left-out" : "dropped"].value++;
  }

  #checkIgnored(objects: readonly ItemMeta[]): void {
    const { serverFilter, collection } = this.#request;
    const { group, resource } = collection;
    if (!objects.some((object) => isHiddenBy(serverFilter, governingPlace(group, resource, object)))) return;
    this.#reportIgnored?.();
    this.#reportIgnored = undefined;
  }

  // The last events of a departed namespace pass, even if other events of it were left out.
  #isGivenUp(namespace: string, type: WatchFrame["type"]): boolean {
    const isLast = type === "DELETED" && this.#isDeparted(namespace);
    return !isLast && this.#log.hasLeftOut(namespace);
  }

  #isDeparted(namespace: string): boolean {
    return this.#log.isDeparted(namespace);
  }

  #leaveOut(namespaces: readonly string[]): void {
    for (const namespace of namespaces) this.#log.leaveOut(namespace);
  }

  get #log(): ResourceLog {
    return this.#deps.moves.of(this.#request.collection);
  }

  #view(): ResourceView {
    const { current } = this.#deps.session;
    const { group, resource } = this.#request.collection;
    if (current === undefined) throw new Error("watching: there is no snapshot");
    return readViewOf(current.view(group, resource));
  }
}
