// The forward proxy from the process's settings.

import type { ListenAddress } from "../../base/listener.ts";
import type { Registry } from "../../base/metrics.ts";
import { formatAddress } from "../../base/settings.ts";
import { type Cidr, createAddressCheck } from "./address-check.ts";
import { createDial } from "./dial.ts";
import { createEgressMetrics } from "./egress-metrics.ts";
import { createEgressServer, type EgressServer, type EgressServerOptions } from "./egress-server.ts";

export interface Egress {
  readonly server: EgressServer;
  /** Known once it is started. */
  url(): string;
}

type Deps = Omit<EgressServerOptions, "listen" | "drainMs" | "dial" | "metrics"> & { readonly registry: Registry };

/** Settings of the process. */
export interface EgressSettings {
  /** Undefined: there is no forward proxy. */
  readonly egressListen?: ListenAddress | undefined;
  readonly egressPrivateAddresses: readonly Cidr[];
  readonly drainMs: number;
}

/** Undefined if it is switched off. */
export function createEgress(
  { egressListen: listen, egressPrivateAddresses, drainMs }: EgressSettings,
  { registry, ...deps }: Deps,
): Egress | undefined {
  if (listen === undefined) return undefined;
  const dial = createDial({ check: createAddressCheck(egressPrivateAddresses), clock: deps.clock });
  const server = createEgressServer({ ...deps, listen, drainMs, dial, metrics: createEgressMetrics(registry) });
  return { server, url: () => `http://${formatAddress({ host: listen.host, port: server.port })}` };
}
