// Whether the API server knows native sidecars: init containers with restartPolicy Always, on by default since Kubernetes 1.29. An older
// server drops the field without a word, and the pod would wait for its proxy for ever.

/** `gitVersion` is the one of GET /version, such as "v1.36.3" or "v1.29.1-gke.100"; one that cannot be read counts as new. */
export function hasNativeSidecars(gitVersion: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(gitVersion) ?? [];
  if (major === undefined || minor === undefined) return true;
  return Number(major) > 1 || Number(minor) >= 29;
}
