// What the trust controller watches: the apps, whose namespaces need the ConfigMap, the ConfigMaps
// themselves, and the mesh's CAs. A request names the ConfigMap of a namespace.
import { CONFIG_MAPS } from "../../kube/client/resources.ts";
import { type Controller, controllerOf } from "../../runtime/controller.ts";
import { changed } from "../../runtime/predicates.ts";
import type { ControllerBase, ManagerContext } from "../context/manager-context.ts";
import { CA_CONFIG_MAP } from "../facts/injected-pod.ts";
import type { MeshIdentity } from "../identity/mesh-identity.ts";
import { CA_CONFIG_MAPS } from "../identity/mesh-namespaces.ts";
import { createTrustReconciler } from "./reconciler.ts";

export interface TrustControllerOptions extends ControllerBase, Pick<ManagerContext, "sources" | "apps"> {
  readonly identity: Pick<MeshIdentity, "trustPem" | "onChange">;
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
  return sources
    .reduce(
      (builder, { resource }) =>
        builder.watches(resource, ({ metadata }) => [requestIn(metadata.namespace)], { predicates: [changed(() => undefined)] }),
      ofMaps,
    )
    .on<void>(identity.onChange, () => {
      const objects = [...apps.list().map(({ object }) => object), ...configMaps.list()];
      return [...new Set(objects.map(({ metadata }) => metadata.namespace))].map(requestIn);
    })
    .withReconciler(createTrustReconciler({ ...options, configMaps }));
}
