// Updates the node's address translation when Services or EndpointSlices change.
import { execFile } from "node:child_process";
import type { Informers } from "../../src/runtime/informers.ts";
import { ENDPOINT_SLICES, iptablesRules, SERVICE_LABEL, SERVICES, type ServiceObject, serviceHosts } from "./service-rules.ts";

export interface ServiceRoutes {
  /** The /etc/hosts lines for a namespace. */
  hosts(namespace: string): readonly string[];
}

/** @param onChange called after the rules have changed */
export function keepServiceRoutes(informers: Informers, serviceRange: string, onChange: () => void): ServiceRoutes {
  const services = informers.store(SERVICES);
  const slices = informers.store(ENDPOINT_SLICES);
  const slicesOf = ({ metadata: { namespace, name } }: ServiceObject) =>
    slices.list(namespace).filter(({ metadata }) => metadata.labels?.[SERVICE_LABEL] === name);
  const update = createCoalesced(async () => {
    await restoreRules(iptablesRules(services.list(), slicesOf, serviceRange));
    onChange();
  });
  services.onChange(update);
  slices.onChange(update);
  return { hosts: (namespace) => serviceHosts(services.list(), slicesOf, namespace) };
}

/** At most one run at a time, and one more after the last call. */
function createCoalesced(work: () => Promise<void>): () => void {
  let isWanted = false;
  let isBusy = false;
  const run = async () => {
    isBusy = true;
    while (isWanted) {
      isWanted = false;
      await work().catch((error: unknown) => process.stderr.write(`[test node] services: ${String(error)}\n`));
    }
    isBusy = false;
  };
  return () => {
    isWanted = true;
    if (!isBusy) queueMicrotask(() => void (isBusy ? undefined : run()));
  };
}

function restoreRules(rules: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = execFile("iptables-restore", [], (error, _, stderr) => {
      if (error === null) resolve();
      else reject(new Error(`iptables-restore: ${stderr}`));
    });
    child.stdin?.end(rules);
  });
}
