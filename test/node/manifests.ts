// Objects for the tests of pods, in kubectl's default namespace.

/** A pod with the label app=NAME. */
export function pod(name: string, containers: readonly object[], more: object = {}): object {
  const metadata = { name, labels: { app: name } };
  return { apiVersion: "v1", kind: "Pod", metadata, spec: { containers, terminationGracePeriodSeconds: 5, ...more } };
}

/** A Service for the pods with the label app=APP. */
export function service(name: string, app: string, port = 80, targetPort = 8080) {
  return { apiVersion: "v1", kind: "Service", metadata: { name }, spec: { selector: { app }, ports: [{ port, targetPort }] } };
}

/** A Deployment or StatefulSet of pods with the label app=NAME. */
export function workload(kind: string, name: string, replicas: number, podSpec: object, more: object): object {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { terminationGracePeriodSeconds: 5, ...podSpec } };
  return {
    apiVersion: "apps/v1",
    kind,
    metadata: { name },
    spec: { replicas, selector: { matchLabels: labels }, template, ...more },
  };
}
