// What the profiles controller watches: the apps, since one of them must divide clusters, the ClusterProfiles of their namespaces, and
// the MeshClusters, which others may edit and delete. A request names a namespace.
import { MESH_CLUSTERS } from "../../api/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { anyOf, type Controller, changed, controllerOf, generationChanged, labelsChanged } from "../../runtime/controller.ts";
import type { ControllerBase, ManagerContext } from "../context/manager-context.ts";
import { createProfileWatch } from "./profile-watch.ts";
import { createProfilesReconciler } from "./reconciler.ts";

/** Gathers the profiles that a cluster manager writes at once. */
const DEBOUNCE_MS = 500;

type ProfilesControllerOptions = ControllerBase & Pick<ManagerContext, "apps" | "events" | "clock">;

export function addProfilesController(options: ProfilesControllerOptions): Controller {
  const { informers, apps } = options;
  const requestOf = (namespace = "") => ({ namespace: "", name: namespace });
  const namespaceOf = ({ metadata }: KubeObject) => [requestOf(metadata.namespace)];
  const predicates = [
    anyOf(
      generationChanged,
      labelsChanged,
      changed(({ metadata }) => metadata.ownerReferences),
    ),
  ];
  const profiles = createProfileWatch({ ...options, onChange: (namespace) => controller.enqueue(requestOf(namespace)) });
  const controller: Controller = controllerOf({ name: "profiles", debounceMs: DEBOUNCE_MS, ...options })
    .watches(MESH_CLUSTERS, namespaceOf, { predicates })
    .on(apps.onChange, ({ object }) => namespaceOf(object))
    .withReconciler(createProfilesReconciler({ ...options, profiles, store: informers.store(MESH_CLUSTERS) }));
  return controller;
}
