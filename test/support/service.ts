// What a Service does for the proxies: one address in front of several replicas. Each new connection goes to one of those that are
// there, at random; a connection ends when its replica does. A replica that is only stopped (SIGSTOP) still takes connections, as
// in a cluster until its readiness probe fails. Used by test/support/mesh.ts.
import { connect, createServer, type Socket } from "node:net";

export interface Service {
  /** host:port */
  readonly address: string;
  close(): Promise<void>;
}

export interface ServiceOptions {
  /** host:port of the replicas that are there, asked anew for each connection. */
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
