// The state of the whole protocol as plain data: two managers, some proxies, the streams between them, and what is on each disk. A step
// makes a new world out of an old one, so that a search can go on from any of them.

import type { ManagerMessage, ProxyMessage } from "../../src/mesh/contract/messages.ts";
import type { GoneAppPod } from "../../src/mesh/handover/claims.ts";
import type { Issue } from "../../src/mesh/handover/issue.ts";
import type { PodKey } from "../../src/mesh/handover/proxy-facts.ts";
import { type Entry, type Ledger, NEW_LEDGER } from "../../src/mesh/link/ledger.ts";
import type { StreamState } from "../../src/mesh/link/manager-stream.ts";
import { type Dialog, NEW_DIALOG } from "../../src/mesh/link/proxy-dialog.ts";
import type { ProxyRecord } from "../../src/mesh/link/proxy-record.ts";
import { NO_ROUTES, type ProxyRoutes, type RoutesEvent } from "../../src/mesh/link/proxy-routes.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import { DEFAULT_SUBSET } from "../../src/mesh/ownership/table.ts";
import type { Access } from "./access.ts";
import { NAMESPACES } from "./rules.ts";

export interface World {
  readonly nowMs: number;
  /** Each place has one writer at most. */
  readonly places: readonly string[];
  /** What the rules of the app ask for: an index into `wishesFor` these places. */
  readonly wish: number;
  /** Owners stay where they are: those of all places, or those at home, as any of them is more than may move at once. */
  readonly pause: "none" | "all" | "percent";
  /** The manager knows the namespaces inside the cluster. */
  readonly knowsInside: boolean;
  /** From the app's status; undefined where nothing is paused. */
  readonly ownersHashes: readonly string[] | undefined;
  readonly managers: readonly ModelManager[];
  readonly proxies: readonly ModelProxy[];
  readonly streams: readonly Stream[];
  readonly lastStream: number;
  /** The app's `status.routeVersion`. */
  readonly statusVersion: number;
  readonly left: Left;
}

/** What may still happen, so that a search comes to an end. */
export interface Left {
  readonly wishes: number;
  readonly faults: number;
  readonly writes: number;
}

export interface ModelManager {
  readonly epoch: number;
  /** It believes that it leads. Of two, the older one may go on for a while. */
  readonly leads: boolean;
  readonly knownEpoch: number;
  readonly records: ReadonlyMap<PodKey, ProxyRecord<number>>;
  readonly issue: Issue | undefined;
  /** What its last plan was made from. */
  readonly planned:
    | (Pick<World, "wish" | "pause" | "knowsInside"> & { readonly records: unknown; readonly gone: unknown })
    | undefined;
  /** Removed pods that may still write: at home and in other clusters. */
  readonly gone: readonly { readonly pod: GoneAppPod; readonly untilMs: number; readonly abroadUntilMs: number }[];
}

export interface ModelProxy {
  readonly name: string;
  readonly subset: string;
  /** It is of a version that serves no requests to clusters, and does not know their tables. */
  readonly isOld: boolean;
  /** The pod's object exists. */
  readonly isThere: boolean;
  /** Until then the process of a removed pod may write at home. */
  readonly endsMs: number;
  /** Until then it may begin writes in other clusters. */
  readonly endsAbroadMs: number;
  readonly routes: ProxyRoutes;
  /** What new writes are judged by: what the effects of `routes` have put in force. */
  readonly enforced: Snapshot | undefined;
  /** By place: the version of the routes that gave the access which it has had without interruption since. */
  readonly since: ReadonlyMap<string, number>;
  readonly dialog: Dialog;
  readonly stream: number | undefined;
  readonly promises: Ledger;
  /** The epoch of a promise that is being stored. */
  readonly promising: number | undefined;
  /** It does not know which leader an earlier process has promised to follow. */
  readonly outlasts: boolean;
  readonly disk: { readonly stored: Snapshot | undefined; readonly promises: Entry | "lost" | undefined };
  readonly saving: Snapshot | undefined;
  readonly isDraining: boolean;
  readonly writes: readonly Write[];
  /** Writes that nobody waits for any more: of a killed process, or in a cluster whose connections were cut. */
  readonly ghosts: readonly Ghost[];
  readonly timers: readonly { readonly atMs: number; readonly event: RoutesEvent }[];
}

export interface Write extends Access {
  readonly place: string;
  /** Under which it began. */
  readonly routes: Snapshot;
  /** Of the routes that gave the access. */
  readonly sinceVersion: number;
}

export interface Ghost extends Write {
  readonly untilMs: number;
  /** The process itself has cut the connection, so it knows of the write. */
  readonly isKnown: boolean;
}

export interface Stream {
  readonly id: number;
  readonly proxy: number;
  readonly manager: number;
  readonly state: StreamState;
  readonly up: readonly (ProxyMessage | "end")[];
  readonly down: readonly (ManagerMessage | "end")[];
}

export interface Size {
  readonly subsets: readonly string[];
  readonly left: Left;
  /** Default `NAMESPACES`. */
  readonly places?: readonly string[];
  /** Proxies of an earlier version. Default: none. */
  readonly old?: readonly number[];
}

export function createWorld({ subsets, left, places = NAMESPACES, old = [] }: Size): World {
  return {
    nowMs: 0,
    places,
    wish: 0,
    pause: "none",
    knowsInside: true,
    ownersHashes: undefined,
    managers: [createManager(1, [])],
    proxies: subsets.map((subset, index) => ({
      ...createProxy(`${subset === DEFAULT_SUBSET ? "default" : subset}-${index}`, subset),
      isOld: old.includes(index),
    })),
    streams: [],
    lastStream: 0,
    statusVersion: 0,
    left,
  };
}

export function createManager(epoch: number, gone: ModelManager["gone"]): ModelManager {
  return { epoch, leads: true, knownEpoch: 0, records: new Map(), issue: undefined, planned: undefined, gone };
}

/** The manager with the newest epoch. */
export function leaderOf({ managers }: World): number {
  return managers.findIndex(({ epoch }) => epoch === newestEpoch(managers));
}

export function newestEpoch(managers: World["managers"]): number {
  return Math.max(...managers.map(({ epoch }) => epoch));
}

function createProxy(name: string, subset: string): ModelProxy {
  return {
    name,
    subset,
    isOld: false,
    isThere: true,
    endsMs: Number.POSITIVE_INFINITY,
    endsAbroadMs: Number.POSITIVE_INFINITY,
    routes: NO_ROUTES,
    enforced: undefined,
    since: new Map(),
    dialog: NEW_DIALOG,
    stream: undefined,
    promises: NEW_LEDGER,
    promising: undefined,
    outlasts: false,
    disk: { stored: undefined, promises: undefined },
    saving: undefined,
    isDraining: false,
    writes: [],
    ghosts: [],
    timers: [],
  };
}

export function proxyAt(world: World, at: number): ModelProxy {
  const proxy = world.proxies[at];
  if (proxy === undefined) throw new Error(`there is no proxy ${at}`);
  return proxy;
}

export function withProxy(world: World, at: number, change: Partial<ModelProxy>): World {
  return { ...world, proxies: world.proxies.map((proxy, index) => (index === at ? { ...proxy, ...change } : proxy)) };
}

export function withManager(world: World, at: number, change: Partial<ModelManager>): World {
  return { ...world, managers: world.managers.map((manager, index) => (index === at ? { ...manager, ...change } : manager)) };
}

/** Nothing is changed if the stream is gone. */
export function withStream(world: World, id: number, change: (stream: Stream) => Partial<Stream>): World {
  return { ...world, streams: world.streams.map((stream) => (stream.id === id ? { ...stream, ...change(stream) } : stream)) };
}

export function use(world: World, what: keyof Left): World {
  return { ...world, left: { ...world.left, [what]: world.left[what] - 1 } };
}
