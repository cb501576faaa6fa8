// The export `ctrlmesh/runtime`: everything that an operator on this runtime needs. README.md describes it.
// The programs of the mesh import the files themselves.
export { type Clock, type Random, sleep, systemClock, systemRandom } from "../base/clock.ts";
export { processEnv } from "../base/env.ts";
export { isMeshError, MeshError } from "../base/errors.ts";
export { createHealthServer } from "../base/health-server.ts";
export { type Runnable, type RunOptions, runGroups, runMain } from "../base/lifecycle.ts";
export { createLogger, type Logger, silentLogger } from "../base/log.ts";
export { createRegistry } from "../base/metrics.ts";
export {
  type CommandLine,
  listenAddress,
  logLevel,
  milliseconds,
  requiredText,
  type Settings,
  schemaOf,
} from "../base/settings.ts";
export { createKubeClient } from "../kube/client/client.ts";
export { controllerRef, controllerRefOf, isControlledBy } from "../kube/client/owner.ts";
export { apiVersionOf, metadataOnly, type ObjectRef, type Resource, resourceName } from "../kube/client/resource.ts";
export * from "../kube/client/resources.ts";
export type { KubeClient, Patch, SelectorOptions } from "../kube/client/types.ts";
export { isStatus, StatusError } from "../kube/status.ts";
export type { KubeList, KubeObject, LabelSelector, ObjectMeta, OwnerReference } from "../kube/types.ts";
export {
  anyOf,
  type Controller,
  type ControllerBuilder,
  type ControllerOptions,
  changed,
  controllerOf,
  controllerRequest,
  generationChanged,
  labelsChanged,
  type Predicate,
  type SourceOptions,
  selfRequest,
} from "./controller.ts";
export { type ControllerMetrics, createControllerMetrics } from "./controller-metrics.ts";
export { createIfMissing, ensure } from "./ensure.ts";
export { createEventRecorder, type EventRecorder } from "./events.ts";
export { hasFinalizer, setFinalizer } from "./finalizer.ts";
export { createInformers, type Informer, type Informers } from "./informers.ts";
export { loadConnection } from "./kubeconfig.ts";
export { createLeaderElector, type LeaderElector } from "./leader-election.ts";
export { createMergePatch } from "./merge-patch.ts";
export { formatRequest, parseRequest, type Reconciler, type Request, type Result, TerminalError } from "./reconciler.ts";
export { withTransitionTime, writeStatus } from "./status-writer.ts";
export type { Change, Store } from "./store.ts";
