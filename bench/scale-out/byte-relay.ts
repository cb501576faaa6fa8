// Forwards TCP connections to one server and counts the bytes that the server sends. It stands between a proxy and the API server.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface ByteRelay {
  /** The address for clients. */
  readonly url: string;
  /** Bytes from the server so far, as sent: encrypted, perhaps compressed. */
  readonly received: number;
  close(): void;
}

/** @param server the URL of the server, with a port */
export async function startByteRelay(server: string): Promise<ByteRelay> {
  const { hostname, port, protocol } = new URL(server);
  const open = new Set<Socket>();
  let received = 0;
  const listener = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    upstream.on("data", (chunk: Buffer) => {
      received += chunk.length;
    });
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => undefined); // "close" follows
      socket.on("close", () => {
        open.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
  });
  await once(listener.listen(0, "127.0.0.1"), "listening");
  return {
    url: `${protocol}//127.0.0.1:${(listener.address() as AddressInfo).port}`,
    get received() {
      return received;
    },
    close() {
      listener.close();
      for (const socket of open) socket.destroy();
    },
  };
}
