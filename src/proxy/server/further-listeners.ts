// Further addresses of the traffic server: 127.0.0.1:443 for clients with a built-in name of the API server,
// [::1]:5443 for connections that ip6tables redirects. Invariant: every connection belongs to the one traffic
// server.
import { createServer, type Server } from "node:net";
import { createListener, type ListenAddress, type Listener } from "../../base/listener.ts";

export type FurtherListeners = Pick<Listener, "stopAccepting" | "close"> & {
  /** @throws MeshError `LISTEN_FAILED` */
  listen(): Promise<void>;
};

/** Listens on the addresses for `server`, and gives it the sockets. */
export function createFurtherListeners(server: Server, addresses: readonly ListenAddress[]): FurtherListeners {
  const listeners = addresses.map((address) => {
    const door = createServer({ noDelay: true }, (socket) => server.emit("connection", socket));
    return { address, listener: createListener(door, "connection") };
  });
  return {
    async listen() {
      for (const { address, listener } of listeners) await listener.listen(address);
    },
    stopAccepting() {
      for (const { listener } of listeners) listener.stopAccepting();
    },
    async close() {
      await Promise.all(listeners.map(({ listener }) => listener.close()));
    },
  };
}
