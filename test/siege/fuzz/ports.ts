// All ports of the manager and of a sidecar, with what each understands.
import type { Endpoint } from "../attack.ts";
import type { World } from "../world.ts";
import type { MessageKind } from "./messages.ts";

export interface FuzzedPort {
  readonly name: string;
  readonly endpoint: Endpoint;
  /** What is sent before TLS, or to a port without it, and what is sent inside of TLS. */
  readonly plain: readonly MessageKind[];
  readonly secure: readonly MessageKind[];
  readonly alpn: readonly string[];
}

const TLS_ONLY: readonly MessageKind[] = ["bytes", "tls", "http1"];
const HTTP: readonly MessageKind[] = ["bytes", "http1", "http1", "http2"];

export function portsOf({ manager, measured }: World): FuzzedPort[] {
  const { reviews, health } = measured.target;
  const tls = (name: string, endpoint: Endpoint, alpn: readonly string[] = []) => ({
    name,
    endpoint,
    plain: TLS_ONLY,
    secure: HTTP,
    alpn,
  });
  const open = (name: string, endpoint: Endpoint) => ({ name, endpoint, plain: [...HTTP, "tls" as const], secure: [], alpn: [] });
  return [
    tls("manager's webhooks", manager.webhook),
    tls("manager's gRPC", manager.mesh, ["h2"]),
    open("manager's health", manager.health),
    tls("sidecar's reviews", reviews),
    open("sidecar's health", health),
    tls("sidecar's API", measured.traffic),
    open("sidecar's egress", measured.egress),
  ];
}
