// Gives the names of the operator's webhook port to the proxy's port, in the container that declares them: a
// Service with such a name as its targetPort then finds the proxy. Not in the proxy's container:
// EndpointSlices know no port of a native sidecar before Kubernetes 1.33. Pure. Invariant: probes and
// lifecycle hooks with such a name still reach the operator.
import { WEBHOOK_PORT } from "./names.ts";
import type { Container, Handler, Lifecycle, Port } from "./pod-manifest.ts";

/** True if the container gives the port a name. */
export function hasNamedPort({ ports = [] }: Container, port: number): boolean {
  return ports.some((each) => isNamed(each, port));
}

/** The container with the names of `port` at the proxy's port. A second call changes nothing. */
export function withMovedNames(container: Container, port: number): Container {
  const ports = container.ports?.map((each) => (isNamed(each, port) ? { ...each, containerPort: WEBHOOK_PORT } : each));
  const names = ports?.filter((each) => isNamed(each, WEBHOOK_PORT)).map(({ name }) => name);
  if (ports === undefined || names === undefined || names.length === 0) return container;
  // The kubelet looks for the name in the ports of the same container.
  const target = <T extends { readonly port: string | number }>(to: T): T =>
    typeof to.port === "string" && names.includes(to.port) ? { ...to, port } : to;
  const handler = <H extends Handler>(probe: H): H => ({
    ...probe,
    ...(probe.httpGet && { httpGet: target(probe.httpGet) }),
    ...(probe.tcpSocket && { tcpSocket: target(probe.tcpSocket) }),
  });
  const { startupProbe, livenessProbe, readinessProbe, lifecycle } = container;
  return {
    ...container,
    ports,
    ...(startupProbe && { startupProbe: handler(startupProbe) }),
    ...(livenessProbe && { livenessProbe: handler(livenessProbe) }),
    ...(readinessProbe && { readinessProbe: handler(readinessProbe) }),
    ...(lifecycle && { lifecycle: hooks(lifecycle, handler) }),
  };
}

function hooks(lifecycle: Lifecycle, handler: (hook: Handler) => Handler): Lifecycle {
  const { postStart, preStop } = lifecycle;
  return {
    ...lifecycle,
    ...(postStart && { postStart: handler(postStart) }),
    ...(preStop && { preStop: handler(preStop) }),
  };
}

function isNamed({ name = "", containerPort, protocol = "TCP" }: Port, port: number): boolean {
  return name !== "" && containerPort === port && protocol === "TCP";
}
