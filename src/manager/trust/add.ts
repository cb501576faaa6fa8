// What the trust controller watches: the apps, whose namespaces need the ConfigMap, the ConfigMaps
// themselves, and the mesh's CAs. The controller reconciles namespaces: the name in a request is the
// ConfigMap's name.

import type { Logger } from "../../base/log.ts";
import { CONFIG_MAPS } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { type Controller, controllerOf } from "../../runtime/controller.ts";
import type { ControllerMetrics } from "../../runtime/controller-metrics.ts";
import type { Informers } from "../../runtime/informers.ts";
import { changed } from "../../runtime/predicates.ts";
import type { Apps, Source } from "../apps/app.ts";
import { CA_CONFIG_MAP } from "../facts/injected-pod.ts";
import type { MeshIdentity } from "../identity/mesh-identity.ts";
import { CA_CONFIG_MAPS } from "../identity/mesh-namespaces.ts";
import { createTrustReconciler } from "./reconciler.ts";

export interface TrustControllerOptions {
  readonly client: KubeClient;
  readonly informers: Informers;
  readonly sources: readonly Source[];
  readonly apps: Apps;
  readonly identity: Pick<MeshIdentity, "trustPem" | "onChange">;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
}

export function addTrustController(options: TrustControllerOptions): Controller {
  const { informers, identity, sources, apps } = options;
  const selectors = CA_CONFIG_MAPS;
  const configMaps = informers.store(CONFIG_MAPS, selectors);
  const requestIn = (namespace = "") => ({ namespace, name: CA_CONFIG_MAP });
  const ofMaps = controllerOf({ name: "trust", ...options }).for(CONFIG_MAPS, {
    selectors,
    predicates: [changed(({ data }) => data)],
  });
  const controller = sources
    .reduce(
      (builder, { resource }) =>
        builder.watches(resource, ({ metadata }) => [requestIn(metadata.namespace)], { predicates: [changed(() => undefined)] }),
      ofMaps,
    )
    .withReconciler(createTrustReconciler({ ...options, configMaps }));
  identity.onChange(() => {
    const objects = [...apps.list().map(({ object }) => object), ...configMaps.list()];
    const namespaces = new Set(objects.map(({ metadata }) => metadata.namespace));
    for (const namespace of namespaces) controller.enqueue(requestIn(namespace));
  });
  return controller;
}
