// A Service for the proxies: one address for several replicas. A new connection goes to a random live replica and ends with it.
// As in a cluster before its readiness probe fails, a stopped replica (SIGSTOP) still gets connections. Used by
// test/support/mesh.ts.
import { connect, createServer, type Socket } from "node:net";

export interface Service {
  /** host:port */
  readonly address: string;
  close(): Promise<void>;
}

export interface ServiceOptions {
  /** The host:port of the live replicas, read again for each connection. */
  backends(): readonly string[];
  /** Numbers from 0 to 1. */
  random?(): number;
}

export async function startService({ backends, random = Math.random }: ServiceOptions): Promise<Service> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => sockets.delete(socket));
    return socket;
  };
  const server = createServer((client) => {
    keep(client);
    const all = backends();
    const [host, port] = (all[Math.floor(random() * all.length)] ?? "").split(":");
    if (host === undefined || port === undefined) {
      client.resetAndDestroy(); // no endpoints: refused
      return;
    }
    const backend = keep(connect({ host, port: Number(port) }));
    client.setNoDelay(true);
    backend.setNoDelay(true);
    client.pipe(backend).pipe(client);
    client.once("close", () => backend.destroy());
    backend.once("close", () => client.destroy());
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", () => resolve()));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the service has no port");
  return {
    address: `127.0.0.1:${address.port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
