// The finalizers that this project puts on objects, so that their deletion waits for what has to come first.

/** On a VirtualApp: its pods have to get the whole view back, in an order in which nothing has two owners. */
export const ROUTES_FINALIZER = "ctrlmesh.kruise.io/routes";
