// Connections of a stranger, which opens a new one whenever one is closed. The tests of listeners use it.
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

export interface HostileOptions {
  readonly port: number;
  /** Of the server; default 127.0.0.1. */
  readonly host?: string;
  /** Where the stranger connects from, such as 127.0.0.9. */
  readonly from: string;
  readonly count: number;
  /** Finishes TLS handshakes with these protocols. Default: sends no byte of TLS. */
  readonly protocols?: readonly string[];
  /** What it sends on each connection, once it is open. */
  readonly send?: string | Buffer;
  /** Opens a new connection this long after one was closed, in milliseconds; default 50. */
  readonly againMs?: number;
}

export interface HostileConnections {
  /** Those that are open now. */
  readonly open: number;
  /** Those that were open or refused so far. */
  readonly tried: number;
  stop(): void;
}

export function openHostileConnections(options: HostileOptions): HostileConnections {
  const { port, host = "127.0.0.1", from, count, protocols, send, againMs = 50 } = options;
  const sockets = new Set<Socket>();
  const opened = new Set<Socket>();
  let isOver = false;
  let tried = 0;
  const openOne = () => {
    if (isOver) return;
    tried++;
    const tcp = connectTcp({ host, port, localAddress: from });
    const socket =
      protocols === undefined ? tcp : connectTls({ socket: tcp, rejectUnauthorized: false, ALPNProtocols: [...protocols] });
    sockets.add(socket);
    socket.once(protocols === undefined ? "connect" : "secureConnect", () => {
      opened.add(socket);
      if (send !== undefined) socket.write(send);
    });
    socket.resume().on("error", () => undefined);
    socket.once("close", () => {
      sockets.delete(socket);
      opened.delete(socket);
      setTimeout(openOne, againMs).unref();
    });
  };
  for (let index = 0; index < count; index++) openOne();
  return {
    get open() {
      return opened.size;
    },
    get tried() {
      return tried;
    },
    stop() {
      isOver = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}
