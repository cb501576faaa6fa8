// Judges the events of one watch by the routes in force, and remembers what judging takes: which namespaces have gone while the
// client knows their objects, whether the first event was seen, what was left out. Invariant: bytes that it gives out hold no
// object but the subset's at that instant and what the pod goes on showing. Called by the watch stream, which knows how bytes come and go.
import type { Clock } from "../../base/clock.ts";
import type { Encoding, ItemMeta, ReadOptions } from "../../kube/codec/types.ts";
import { filterTableFrame, readFrame, type WatchFrame } from "../../kube/codec/watch-frames.ts";
import { parseResourceVersion } from "../../kube/resource-version.ts";
import { isHiddenBy } from "../../route/plan-query.ts";
import { governingNamespace, isOwned, type ResourceView, readViewOf } from "../../route/snapshot.ts";
import type { Resync } from "../relist/resync.ts";
import type { Enforced, Session } from "../session/session.ts";
import { judgeEvent } from "./judge-event.ts";
import type { EventCounters, PlanCounters, StreamMetrics } from "./stream-metrics.ts";
import { hidesNamespaces, isAllMine, isPushdownStale, type WatchScope } from "./watch-scope.ts";

/** What becomes of a frame: bytes to send, nothing, nothing and the client must list again, or it has to wait. */
export type Fate = Uint8Array | "drop" | "relist" | "wait";

export interface WatchJudgeDeps {
  readonly clock: Clock;
  readonly session: Session;
  readonly resync: Resync;
  readonly metrics: StreamMetrics;
}

/** A namespace goes when it is empty, and the routes say so later: a watch that is not held up has its last events by then. */
const LAST_EVENTS_MS = 30_000;
const VERSIONS = { versions: true };
const LABELS_AND_VERSIONS = { labels: true, versions: true };

export class WatchJudge {
  readonly #encoding: Encoding;
  readonly #scope: WatchScope;
  readonly #deps: WatchJudgeDeps;
  readonly #events: EventCounters;
  readonly #served: PlanCounters | undefined;
  /** What was asked to be left out may come all the same, where the API server does not know the parameter. */
  #suspect: (() => void) | undefined;
  /** Namespaces that were ours when they vanished from the table, and when, later by what it was held up: their last events are the client's. */
  readonly #departed = new Map<string, number>();
  /** No event has been dealt with yet. */
  #isFirst = true;
  /** Of the last event that was dealt with. */
  #version: bigint | undefined;
  /** Versions grow from one event to the next. */
  #isInOrder: boolean;

  constructor(encoding: Encoding, scope: WatchScope, deps: WatchJudgeDeps) {
    this.#encoding = encoding;
    this.#scope = scope;
    this.#deps = deps;
    this.#events = deps.metrics.eventsOf(scope.collection);
    this.#served = scope.plan === undefined ? undefined : deps.metrics.servedBy(scope.plan);
    this.#suspect = hidesNamespaces(scope.pushed) ? scope.onIgnored : undefined;
    this.#version = scope.version;
    this.#isInOrder = scope.version !== undefined;
  }

  /**
   * The client has been shown all that is the subset's up to this version, and nothing later. Undefined if that is not known: before
   * the initial events are over, and after an event that was not read.
   */
  get version(): bigint | undefined {
    return this.#view().isMoving ? undefined : this.#version;
  }

  /**
   * Events of a namespace that has gone may be still to come, which no later watch would show.
   * @param isHeldUp events have not been taken as they came
   */
  mayOweLastEvents(isHeldUp: boolean): boolean {
    if (isHeldUp) return this.#departed.size > 0;
    const nowMs = this.#deps.clock.monotonicMs();
    return this.#departed.values().some((sinceMs) => nowMs - sinceMs < LAST_EVENTS_MS);
  }

  /** It was held up for so long and goes on: what it may owe has waited as well. */
  goesOn(heldUpMs: number): void {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const [namespace, sinceMs] of this.#departed) this.#departed.set(namespace, Math.min(nowMs, sinceMs + heldUpMs));
  }

  /** Bytes have come from the API server. */
  received(bytes: number): void {
    this.#served?.read(bytes);
  }

  /** Throws `CODEC_MALFORMED`. */
  judge(frame: Uint8Array): Fate {
    const view = this.#view();
    if (isAllMine(view, this.#scope.collection)) {
      this.#version = undefined;
      return this.#show(frame);
    }
    // The watch is about to end with a 410. Until then nothing, no bookmark either, may say that what was shown is all there is.
    if (view.isMoving) return "drop";
    const options = view.labelFilter === undefined ? VERSIONS : LABELS_AND_VERSIONS;
    const event = readFrame(this.#encoding, frame, options);
    const fate = this.#judgeEvent(view, frame, event, options);
    if (fate !== "wait") this.#follows(event);
    return fate;
  }

  #judgeEvent(view: ResourceView, frame: Uint8Array, event: WatchFrame, options: ReadOptions): Fate {
    if (event.type === "BOOKMARK" || event.type === "ERROR") return this.#show(frame);
    const { verdict, leftOut } = judgeEvent(view, event, (namespace) => this.#isGivenUp(namespace), this.#isFirst);
    switch (verdict.kind) {
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
        // The last of a deleted namespace: without it the client would keep its objects for ever.
        if (event.type === "DELETED" && verdict.namespaces.every((namespace) => this.#departed.has(namespace)))
          return this.#show(frame);
        this.#events.held.value++;
        return "wait";
      default:
        return verdict satisfies never;
    }
  }

  // The initial events are ADDED, in any order, and only a bookmark says for sure that they are over: of a WatchList the first one is
  // `k8s.io/initial-events-end` (k8s.io/apiserver, cache_watcher.go), which its client waits for and no later watch would send.
  #follows({ type, objects, isTable }: WatchFrame): void {
    this.#isInOrder ||= type === "BOOKMARK";
    this.#version = this.#isInOrder && !isTable ? parseResourceVersion(objects[0]?.resourceVersion) : undefined;
  }

  /** The namespaces of a frame of which nobody has said whose they are. */
  unknownIn(frame: Uint8Array): string[] {
    const view = this.#view();
    const { objects } = readFrame(this.#encoding, frame);
    const names = new Set(objects.map((object) => governingNamespace(view.group, view.resource, object)));
    return [...names].filter((namespace) => view.ownershipOf(namespace) === "unknown");
  }

  /**
   * Its owner is not waited for any more: what the frame holds counts as left out.
   * @returns true if the client knows objects of its namespace, so that only a new list tells what became of them
   */
  giveUp(frame: Uint8Array): boolean {
    let isKnown = false;
    for (const namespace of this.unknownIn(frame)) {
      this.#leaveOut([namespace]);
      if (this.#departed.delete(namespace)) isKnown = true;
    }
    return isKnown;
  }

  /** Follows a change of the routes. `removed`: namespaces that the table knows no more. */
  follow(removed: readonly string[], before: Enforced): void {
    const { group, resource } = this.#scope.collection;
    const view = this.#view();
    const old = readViewOf(before.view(group, resource));
    const nowMs = this.#deps.clock.monotonicMs();
    for (const namespace of removed) if (old.ownershipOf(namespace) === "own") this.#departed.set(namespace, nowMs);
    for (const namespace of this.#departed.keys())
      if (view.ownershipOf(namespace) !== "unknown") this.#departed.delete(namespace);
  }

  /**
   * True if the watch cannot go on under the routes in force: what was pushed down hides something that is the subset's now, or
   * all moves, and then even the bookmark that ends the initial events has been dropped.
   * @param born the namespaces that may be new since this was asked last
   */
  isStale(born: readonly string[]): boolean {
    const view = this.#view();
    return view.isMoving === true || isPushdownStale(view, this.#scope.pushed, born);
  }

  /** As `isStale`, at the beginning: the routes may have changed since the watch was decided upon. */
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
    const { pushed, collection } = this.#scope;
    const { group, resource } = collection;
    if (!objects.some((object) => isHiddenBy(pushed, governingNamespace(group, resource, object)))) return;
    this.#suspect?.();
    this.#suspect = undefined;
  }

  #isGivenUp(namespace: string): boolean {
    return !this.#departed.has(namespace) && this.#deps.resync.leftOut.has(this.#scope.collection, namespace);
  }

  #leaveOut(namespaces: readonly string[]): void {
    for (const namespace of namespaces) this.#deps.resync.leftOut.note(this.#scope.collection, namespace);
  }

  #view(): ResourceView {
    const { current } = this.#deps.session;
    const { group, resource } = this.#scope.collection;
    if (current === undefined) throw new Error("watching: there is no snapshot");
    return readViewOf(current.view(group, resource));
  }
}
