// The network of the test node. Each pod has a namespace with one address, joined to the node's namespace by a veth pair and a
// route. All traffic of pods passes through the node, so its address translation sees both directions of every connection.
// Namespaces and links end with the agent.
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { promisify } from "node:util";

const run = promisify(execFile);

export const NODE_ADDRESS = "10.200.0.1";
/** The addresses of Services. The node needs a route for them, although each is translated before use. */
export const SERVICE_RANGE = "10.96.0.0/16";
const FIRST_POD = 10;

export interface PodNetwork {
  readonly address: string;
  /** Path of the namespace, for nsenter --net. */
  readonly namespace: string;
  remove(): Promise<void>;
}

/** Prepares the node's namespace, which is this process's own. */
export async function setUpNode(): Promise<void> {
  await shell(`
mkdir -p /run/netns
mount -t tmpfs -o mode=755 tmpfs /run/netns
ip -batch - <<END
link set lo up
addr add ${NODE_ADDRESS}/32 dev lo
route add ${SERVICE_RANGE} dev lo src ${NODE_ADDRESS}
END`);
  writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
}

/** Addresses are assigned in turn, so that none is reused soon. */
export function createPodNetworks(): { add(): Promise<PodNetwork> } {
  let last = FIRST_POD - 1;
  return {
    async add() {
      const n = ++last;
      const address = `10.200.${1 + (n >> 8)}.${n & 255}`;
      const [name, link] = [`pod${n}`, `veth${n}`];
      // A pod's program may listen on any port, as with the common container runtimes.
      await shell(`
ip netns add ${name}
ip -batch - <<END
link add ${link} type veth peer name eth0 netns ${name}
link set ${link} up
route add ${address}/32 dev ${link} src ${NODE_ADDRESS}
END
nsenter --net=/run/netns/${name} sh -c 'echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start
ip -batch - <<END
link set lo up
addr add ${address}/32 dev eth0
link set eth0 up
route add ${NODE_ADDRESS}/32 dev eth0
route add default via ${NODE_ADDRESS} dev eth0
END'`);
      return {
        address,
        namespace: `/run/netns/${name}`,
        remove: () => shell(`ip link del ${link} || true; ip netns del ${name}`),
      };
    },
  };
}

async function shell(script: string): Promise<void> {
  await run("sh", ["-euc", script]);
}
