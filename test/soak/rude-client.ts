// A rude client. It opens a TLS connection for every request, writes byte by byte if the test wants that, and aborts in any
// state: by a reset, by a normal end, or in the middle of a record. Each visit ends with its socket closed.
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";

export interface Target {
  readonly host: string;
  readonly port: number;
  readonly caPem: string;
  readonly token: string;
}

/** How the client aborts a connection. */
export type Farewell = "reset" | "destroy" | "end";

/** The longest visit. */
const MAX_VISIT_MS = 15_000;

/** One connection. */
export interface Visit {
  write(text: string | Uint8Array): void;
  /** Bytes of application data received so far. */
  readonly received: number;
  readonly head: string;
  /** Resolves when this many bytes have arrived, the connection is over, or `ms` have passed. */
  until(isEnough: () => boolean, ms: number): Promise<void>;
  readonly over: boolean;
}

export interface RudeClient {
  /** Connects, runs `act`, and disconnects. Never rejects. */
  visit(act: (visit: Visit) => Promise<Farewell>): Promise<void>;
  /** The same without TLS. `act` writes bytes that are not a handshake, or half of a handshake. */
  visitRaw(act: (socket: Socket) => Promise<void>): Promise<void>;
  readonly open: number;
  /** The head of a request, with the credentials. */
  request(method: string, path: string, headers?: Readonly<Record<string, string>>): string;
}

export function createRudeClient({ host, port, caPem, token }: Target): RudeClient {
  const sockets = new Set<Socket>();
  let session: Buffer | undefined;

  const dial = () => {
    const socket = connectTcp({ host, port, noDelay: true });
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
    return socket;
  };
  const secured = (socket: Socket) =>
    new Promise<TLSSocket | undefined>((resolve) => {
      const tls = connectTls({ socket, ca: caPem, servername: "localhost", ...(session === undefined ? {} : { session }) });
      tls.on("error", () => undefined);
      tls.once("session", (next) => {
        session = next;
      });
      tls.once("secureConnect", () => resolve(tls));
      socket.once("close", () => resolve(undefined));
    });

  return {
    get open() {
      return sockets.size;
    },
    request(method, path, headers = {}) {
      const lines = Object.entries({ host: `${host}:${port}`, authorization: `Bearer ${token}`, ...headers });
      return `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
    },
    async visit(act) {
      const socket = dial();
      const watchdog = setTimeout(() => socket.destroy(), MAX_VISIT_MS);
      const tls = await secured(socket);
      if (tls !== undefined) {
        const farewell = await act(visitOf(tls));
        if (farewell === "reset") socket.resetAndDestroy();
        else if (farewell === "end") tls.end();
        else socket.destroy();
      }
      if (!socket.destroyed) await closed(socket);
      clearTimeout(watchdog);
    },
    async visitRaw(act) {
      const socket = dial();
      const watchdog = setTimeout(() => socket.destroy(), MAX_VISIT_MS);
      await act(socket);
      if (!socket.destroyed) socket.resetAndDestroy();
      if (!socket.closed) await closed(socket);
      clearTimeout(watchdog);
    },
  };
}

function visitOf(tls: TLSSocket): Visit {
  let received = 0;
  let head = "";
  let over = false;
  let check = () => {};
  tls.on("data", (chunk: Buffer) => {
    received += chunk.length;
    if (head.length < 512) head += chunk.toString("latin1", 0, 512);
    check();
  });
  tls.on("close", () => {
    over = true;
    check();
  });
  tls.on("end", () => {
    over = true;
    check();
  });
  return {
    write: (text) => void (over || tls.write(text)),
    get received() {
      return received;
    },
    get head() {
      return head;
    },
    get over() {
      return over;
    },
    until: (isEnough, ms) =>
      new Promise((resolve) => {
        const done = () => {
          clearTimeout(timer);
          check = () => {};
          resolve();
        };
        const timer = setTimeout(done, ms);
        check = () => {
          if (over || isEnough()) done();
        };
        check();
      }),
  };
}

const closed = (socket: Socket) => new Promise<void>((resolve) => socket.once("close", () => resolve()));
