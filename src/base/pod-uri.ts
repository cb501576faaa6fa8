// The name of a pod in the certificates of the mesh, as a URI in the form of SPIFFE IDs. A uid makes it the
// name of one pod only, also if a later pod has the same name. Pure. The manager signs it, and proxies check
// it on connections to each other.

export interface PodName {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** The characters of names and uids in Kubernetes need no escape in a URI. */
export function podUri({ namespace, name, uid }: PodName): string {
  return `spiffe://ctrlmesh/ns/${encodeURIComponent(namespace)}/pod/${encodeURIComponent(name)}/${encodeURIComponent(uid)}`;
}
