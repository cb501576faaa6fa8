// Two network namespaces with a router between them. A router that does not forward drops every packet silently, like a lost node
// or a broken firewall. Needs root and iproute2.
import { spawnSync } from "node:child_process";

export interface CuttableNetwork {
  /** The names of the namespaces. `ip netns exec NAME ...` runs a program in a namespace. */
  readonly near: string;
  readonly router: string;
  readonly far: string;
  /** The far side's address. */
  readonly farAddress: string;
  remove(): void;
}

// TEST-NET-1 and TEST-NET-2 (RFC 5737) do not exist in any other network.
const NEAR = { host: "192.0.2.2", router: "192.0.2.1" };
const FAR = { host: "198.51.100.2", router: "198.51.100.1" };

/** Creates the two namespaces and the router, and connects them. */
export function createCuttableNetwork(): CuttableNetwork {
  const name = (side: string) => `ctrlmesh-${process.pid}-${side}`;
  const [near, router, far] = [name("near"), name("router"), name("far")];
  const remove = () => {
    for (const space of [near, router, far]) spawnSync("ip", ["netns", "del", space]);
  };
  remove();
  try {
    for (const space of [near, router, far]) ip("netns", "add", space);
    connect(near, NEAR.host, router, NEAR.router, "n");
    connect(far, FAR.host, router, FAR.router, "f");
    ip("-n", near, "route", "add", "default", "via", NEAR.router);
    ip("-n", far, "route", "add", "default", "via", FAR.router);
    ip("-n", near, "link", "set", "lo", "up");
    setForwarding(router, true);
  } catch (error) {
    remove();
    throw error;
  }
  return { near, router, far, farAddress: FAR.host, remove };
}

/** Forwards all packets, or drops them all. */
export function setForwarding(router: string, on: boolean): void {
  ip("netns", "exec", router, "sh", "-c", `echo ${on ? 1 : 0} >/proc/sys/net/ipv4/ip_forward`);
}

function connect(space: string, address: string, router: string, routerAddress: string, link: string): void {
  ip("-n", router, "link", "add", `r${link}`, "type", "veth", "peer", "name", "eth0", "netns", space);
  for (const [at, device, own] of [
    [space, "eth0", address],
    [router, `r${link}`, routerAddress],
  ] as const) {
    ip("-n", at, "addr", "add", `${own}/24`, "dev", device);
    ip("-n", at, "link", "set", device, "up");
  }
}

function ip(...args: string[]): void {
  const { status, stderr, error } = spawnSync("ip", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`ip ${args.join(" ")}: ${error?.message ?? stderr}`);
}
