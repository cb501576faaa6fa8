// What the trust controller watches: the VirtualApps, which say where the ConfigMap must be, the ConfigMaps themselves, and the mesh's
// identity. It reconciles namespaces: the name in a request is the ConfigMap's.

import { VIRTUAL_APPS } from "../../../api/resources.ts";
import type { Logger } from "../../../base/log.ts";
import { CONFIG_MAPS } from "../../../kube/client/resources.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import { type Controller, controllerOf } from "../../../runtime/controller.ts";
import type { ControllerMetrics } from "../../../runtime/controller-metrics.ts";
import type { Informers } from "../../../runtime/informers.ts";
import { changed } from "../../../runtime/predicates.ts";
import type { MeshIdentity } from "../../identity/mesh-identity.ts";
import { CA_CONFIG_MAP } from "../../injection/names.ts";
import { createTrustReconciler } from "./reconciler.ts";

export interface TrustControllerOptions {
  readonly client: KubeClient;
  readonly informers: Informers;
  readonly identity: Pick<MeshIdentity, "trustPem" | "onChange">;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
}

export function addTrustController(options: TrustControllerOptions): Controller {
  const { informers, identity } = options;
  const apps = informers.store(VIRTUAL_APPS);
  // One watch of what has this name, in all namespaces; others cost nothing.
  const selectors = { fieldSelector: `metadata.name=${CA_CONFIG_MAP}` };
  const configMaps = informers.store(CONFIG_MAPS, selectors);
  const requestIn = (namespace = "") => ({ namespace, name: CA_CONFIG_MAP });
  const controller = controllerOf({ name: "trust", ...options })
    .for(CONFIG_MAPS, { selectors, predicates: [changed(({ data }) => data)] })
    .watches(VIRTUAL_APPS, ({ metadata }) => [requestIn(metadata.namespace)], { predicates: [changed(() => undefined)] })
    .withReconciler(createTrustReconciler({ ...options, apps, configMaps }));
  identity.onChange(() => {
    const namespaces = new Set([...apps.list(), ...configMaps.list()].map(({ metadata }) => metadata.namespace));
    for (const namespace of namespaces) controller.enqueue(requestIn(namespace));
  });
  return controller;
}
