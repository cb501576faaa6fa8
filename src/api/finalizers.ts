// The finalizers that the manager adds to objects, so that their deletion waits for a clean-up.

/**
 * On a VirtualApp: before its deletion all pods get the whole view back, in an order in which no namespace
 * has two owners.
 */
export const ROUTES_FINALIZER = "ctrlmesh.kruise.io/routes";
