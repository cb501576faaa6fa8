// Filters the events of one watch by the routes in force. Invariant: the bytes that it gives out hold no object but those that this
// pod may read at that instant. Called by the watch stream, which moves the bytes.
import type { Clock } from "../../base/clock.ts";
import type { Encoding, ItemMeta, ReadOptions } from "../../kube/codec/types.ts";
import { filterTableFrame, readFrame, type WatchFrame } from "../../kube/codec/watch-frames.ts";
import { parseResourceVersion } from "../../kube/resource-version.ts";
import { isHiddenBy } from "../../route/plan-query.ts";
import { governingNamespace, isOwned, type ResourceView, readViewOf } from "../../route/snapshot.ts";
import type { Resync } from "../relist/resync.ts";
import type { Enforced, Session } from "../session/session.ts";
import { DepartedNamespaces } from "./departed-namespaces.ts";
import { decideEvent } from "./event-decision.ts";
import { hidesNamespaces, isAllOwned, isServerFilterStale, type SentRequest } from "./sent-request.ts";
import type { EventCounters, PlanCounters, StreamMetrics } from "./stream-metrics.ts";

/** What becomes of a frame: bytes to send, nothing, nothing and the client must list again, or the frame has to wait. */
export type FrameOutcome = Uint8Array | "drop" | "relist" | "wait";

export interface WatchFilterDeps {
  readonly clock: Clock;
  readonly session: Session;
  readonly resync: Resync;
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
  readonly #departed: DepartedNamespaces;
  /** Set until an object shows that the API server ignores the server-side filter. */
  #suspect: (() => void) | undefined;
  /** No event has been dealt with yet. */
  #isFirst = true;
  /** Of the last event that was dealt with. */
  #version: bigint | undefined;
  /** Versions grow from one event to the next. */
  #isInOrder: boolean;

  constructor(encoding: Encoding, request: SentRequest, deps: WatchFilterDeps) {
    this.#encoding = encoding;
    this.#request = request;
    this.#deps = deps;
    this.#events = deps.metrics.eventsOf(request.collection);
    this.#served = request.plan === undefined ? undefined : deps.metrics.servedBy(request.plan);
    this.#departed = new DepartedNamespaces(deps.clock);
    this.#suspect = hidesNamespaces(request.serverFilter) ? request.onIgnored : undefined;
    this.#version = request.version;
    this.#isInOrder = request.version !== undefined;
  }

  /**
   * The client has been shown all objects of the subset up to this version, and nothing later. Undefined if that is not known: before
   * the initial events are over, and after an event that was not read.
   */
  get version(): bigint | undefined {
    return this.#view().isMoving ? undefined : this.#version;
  }

  /** True if events of a namespace that has gone may still come, which no later watch would show. */
  mayOweLastEvents(isStalled: boolean): boolean {
    return this.#departed.mayOweEvents(isStalled);
  }

  /** The watch goes on after a pause. */
  goesOn(pauseMs: number): void {
    this.#departed.addPause(pauseMs);
  }

  /** Bytes have come from the API server. */
  received(bytes: number): void {
    this.#served?.read(bytes);
  }

  /** Throws `CODEC_MALFORMED`. */
  filter(frame: Uint8Array): FrameOutcome {
    const view = this.#view();
    if (isAllOwned(view, this.#request.collection)) {
      this.#version = undefined;
      return this.#show(frame);
    }
    // The watch is about to end with a 410. Until then no frame, no bookmark either, may say that the client has seen everything.
    if (view.isMoving) return "drop";
    const options = view.labelFilter === undefined ? VERSIONS : LABELS_AND_VERSIONS;
    const event = readFrame(this.#encoding, frame, options);
    const outcome = this.#outcomeOf(view, frame, event, options);
    if (outcome !== "wait") this.#follows(event);
    return outcome;
  }

  #outcomeOf(view: ResourceView, frame: Uint8Array, event: WatchFrame, options: ReadOptions): FrameOutcome {
    if (event.type === "BOOKMARK" || event.type === "ERROR") return this.#show(frame);
    const { action, leftOut } = decideEvent(view, event, (namespace) => this.#isGivenUp(namespace), this.#isFirst);
    switch (action.kind) {
      case "show":
        return this.#show(frame);
      case "show-part":
        this.#leaveOut(leftOut);
        return this.#show(filterTableFrame(frame, (meta) => isOwned(view, meta), options));
      case "relist":
        this.#served?.dropped(1);
        this.#events.dropped.value++;
        return "relist";
      case "drop":
        this.#drop(event, leftOut);
        return "drop";
      case "hold":
        // The last event of a deleted namespace: without it the client would keep the object for ever.
        if (event.type === "DELETED" && action.namespaces.every((namespace) => this.#departed.has(namespace)))
          return this.#show(frame);
        this.#events.held.value++;
        return "wait";
      default:
        return action satisfies never;
    }
  }

  // The initial events are ADDED, in any order, and only a bookmark says for sure that they are over. In a WatchList the first bookmark
  // is `k8s.io/initial-events-end` (k8s.io/apiserver, cache_watcher.go): its client waits for it, and no later watch would send it.
  #follows({ type, objects, isTable }: WatchFrame): void {
    this.#isInOrder ||= type === "BOOKMARK";
    this.#version = this.#isInOrder && !isTable ? parseResourceVersion(objects[0]?.resourceVersion) : undefined;
  }

  /** The unknown namespaces of a frame. */
  unknownIn(frame: Uint8Array): string[] {
    const view = this.#view();
    const { objects } = readFrame(this.#encoding, frame);
    const names = new Set(objects.map((object) => governingNamespace(view.group, view.resource, object)));
    return [...names].filter((namespace) => view.ownershipOf(namespace) === "unknown");
  }

  /**
   * Nobody waits for the owner of the frame's namespaces any more: what the frame holds counts as left out.
   * @returns true if the client knows objects of such a namespace, so that only a new list says what became of them
   */
  giveUp(frame: Uint8Array): boolean {
    let isKnown = false;
    for (const namespace of this.unknownIn(frame)) {
      this.#leaveOut([namespace]);
      if (this.#departed.forget(namespace)) isKnown = true;
    }
    return isKnown;
  }

  /** Follows a change of the routes. `removed`: namespaces that the table names no more. */
  follow(removed: readonly string[], before: Enforced): void {
    const { group, resource } = this.#request.collection;
    this.#departed.follow(removed, readViewOf(before.view(group, resource)), this.#view());
  }

  /**
   * True if the watch cannot go on under the routes in force: the server-side filter hides an object of the subset, or the whole
   * resource moves, in which case the bookmark that ends the initial events may be dropped already.
   * @param born the namespaces that may be new since the last call
   */
  isStale(born: readonly string[]): boolean {
    const view = this.#view();
    return view.isMoving === true || isServerFilterStale(view, this.#request.serverFilter, born);
  }

  /** As `isStale`, at the beginning: the routes may have changed since the decision about the watch. */
  isStaleAtStart(): boolean {
    return this.isStale(this.#view().namespaces().own);
  }

  #show(bytes: Uint8Array): Uint8Array {
    this.#isFirst = false;
    this.#events.forwarded.value++;
    this.#served?.sent(bytes.length);
    return bytes;
  }

  #drop({ objects }: WatchFrame, leftOut: readonly string[]): void {
    this.#isFirst = false;
    this.#served?.dropped(1);
    if (this.#suspect !== undefined) this.#checkIgnored(objects);
    this.#leaveOut(leftOut);
    this.#events[leftOut.length > 0 ? "left-out" : "dropped"].value++;
  }

  #checkIgnored(objects: readonly ItemMeta[]): void {
    const { serverFilter, collection } = this.#request;
    const { group, resource } = collection;
    if (!objects.some((object) => isHiddenBy(serverFilter, governingNamespace(group, resource, object)))) return;
    this.#suspect?.();
    this.#suspect = undefined;
  }

  #isGivenUp(namespace: string): boolean {
    return !this.#departed.has(namespace) && this.#deps.resync.leftOut.has(this.#request.collection, namespace);
  }

  #leaveOut(namespaces: readonly string[]): void {
    for (const namespace of namespaces) this.#deps.resync.leftOut.note(this.#request.collection, namespace);
  }

  #view(): ResourceView {
    const { current } = this.#deps.session;
    const { group, resource } = this.#request.collection;
    if (current === undefined) throw new Error("watching: there is no snapshot");
    return readViewOf(current.view(group, resource));
  }
}
