// The annotation by which a person closes breakers: a field of the API, which proxies name in their answers.

/** A new text of this annotation closes the open breakers of its object. */
export const RECOVER_ANNOTATION = "ctrlmesh.kusionstack.io/recover";
