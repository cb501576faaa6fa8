// The target of exec in a soak: an HTTPS server in place of a node's kubelet, which accepts any upgrade and echoes its bytes. It
// does not implement SPDY, since the proxy and kube-apiserver only pass on the bytes of a tunnel.
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";
import type { Resource } from "../../src/kube/client/resource.ts";
import { PODS, type Pod } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import type { KubeObject } from "../../src/kube/types.ts";

const NODES: Resource = { group: "", version: "v1", resource: "nodes", kind: "Node", namespaced: false };
const ACCOUNTS: Resource = { group: "", version: "v1", resource: "serviceaccounts", kind: "ServiceAccount", namespaced: true };

export interface ExecEnd {
  /** The open tunnels. */
  readonly open: number;
  stop(): void;
}

/** Starts the server, and creates a node and a pod of this name with the server's address. */
export async function startExecEnd(client: KubeClient, namespace: string, name: string): Promise<ExecEnd> {
  const now = Date.now();
  const { certPem, keyPem } = issueServerCertificate(createCa({ commonName: "soak", now }), { ipAddresses: ["127.0.0.1"], now });
  const tunnels = new Set<Duplex>();
  const server = createServer({ cert: certPem, key: keyPem });
  server.on("upgrade", (req, socket) => {
    tunnels.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => tunnels.delete(socket));
    socket.on("end", () => socket.end());
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${req.headers.upgrade}\r\n\r\n`);
    socket.on("data", (chunk: Buffer) => {
      if (!socket.write(chunk)) {
        socket.pause();
        socket.once("drain", () => socket.resume());
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await client.create(ACCOUNTS, { metadata: { namespace, name: "default" } });
  await client.create(NODES, { metadata: { name: "soak-node" } });
  const status = {
    addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
  };
  await client.patch(NODES, { name: "soak-node" }, { type: "merge", body: { status } }, { subresource: "status" });
  await client.create(PODS, {
    metadata: { namespace, name },
    spec: { nodeName: "soak-node", containers: [{ name: "main", image: "example.invalid/soak" }] },
  } as KubeObject as Pod);
  return {
    get open() {
      return tunnels.size;
    },
    stop() {
      for (const socket of tunnels) socket.destroy();
      server.close();
    },
  };
}
