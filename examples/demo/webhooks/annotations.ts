// The annotations of a Foo that tell of its admission.
export { DEFAULTED_BY } from "../../operator/webhook.ts";

/** The pod that got the call. Written by the demo. */
export const PICKED = "demo.ctrlmesh.io/called-pod";
