// An act of the demo: what it needs, its steps, and how its state looks. perform.ts plays it. Each step announces its action, acts, and waits for
// the result; it fails without the result.
import { MeshError } from "../../src/base/errors.ts";
import type { DemoPod, PodPlan } from "./pods.ts";
import type { Screen } from "./screen.ts";
import type { Paint } from "./table.ts";
import type { Teller } from "./teller.ts";
import type { Watcher } from "./watcher.ts";
import type { World } from "./world.ts";

/** What is in the cluster at the beginning, and the operator. */
export interface Setting {
  /** YAML files or folders, in the order in which their objects need each other; the CRDs exist before. */
  readonly manifests: readonly string[];
  /** The operator's namespace. */
  readonly namespace: string;
  /** The app: a VirtualApp, or a family of ShardingConfigs. */
  readonly appName: string;
  readonly lockName: string;
  /** The operator has a webhook. The proxies and the manager then know each other by certificates, as in a cluster; the default is false. */
  readonly hasWebhook?: boolean;
}

/** What every step gets. */
export interface Stage<F> {
  readonly world: World;
  readonly watcher: Watcher<F>;
  readonly screen: Screen;
  readonly teller: Teller;
}

export interface Act<F> {
  readonly setting: Setting;
  /** The first step: everything starts. */
  readonly opening: string;
  readonly roles: string;
  readonly pods: readonly PodPlan[];
  /** Who is who, when all pods are Ready. */
  introduce(pods: readonly DemoPod[]): readonly string[];
  /** The present state. */
  look(world: World): Promise<F>;
  /** The tables of a state. No line is wider than `width` after the indentation. */
  draw(facts: F, paint: Paint, width: number): string[];
  /** Plays controllers during all steps. Ends only with an error. */
  play?(world: World, signal: AbortSignal): Promise<never>;
  /** All steps after the first. */
  readonly steps: readonly ((stage: Stage<F>) => Promise<void>)[];
  /** The judgement of the audit log. */
  sumUp(stage: Stage<F>): Promise<void>;
  /** The kind to look at with kubectl. */
  readonly resource: string;
  /** With kubectl: what moves a namespace, to see it on the page. */
  readonly move?: string;
  /** What to run next. */
  readonly next?: string;
}

/** @throws MeshError `UNEXPECTED` */
export function check(isAsTold: boolean, otherwise: string): void {
  if (!isAsTold) throw new MeshError("UNEXPECTED", otherwise);
}
