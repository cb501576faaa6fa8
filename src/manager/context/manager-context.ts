// What the controllers of the manager share. The options of a controller pick the parts that it uses.
import type { ProcessContext } from "../../base/process-context.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { ControllerMetrics } from "../../runtime/controller-metrics.ts";
import type { EventRecorder } from "../../runtime/events.ts";
import type { Informers } from "../../runtime/informers.ts";
import type { Apps, Source } from "../apps/app.ts";
import type { PodWatch } from "../facts/pod-watch.ts";
import type { ProxyRegistry } from "../server/proxy-registry.ts";

export interface ManagerContext extends Pick<ProcessContext, "clock" | "random" | "log"> {
  readonly client: KubeClient;
  readonly informers: Informers;
  readonly sources: readonly Source[];
  readonly apps: Apps;
  readonly pods: PodWatch;
  readonly registry: ProxyRegistry;
  readonly events: Pick<EventRecorder, "event">;
  readonly metrics: ControllerMetrics;
}

export type ControllerBase = Pick<ManagerContext, "client" | "informers" | "log" | "metrics">;
