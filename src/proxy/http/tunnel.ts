// What connects a client's socket with another server's after an upgrade. Called by the traffic server once every layer has agreed.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { HttpCall } from "./handler.ts";

/** Opens a tunnel. When that fails, it closes the client's socket. */
export type Tunnel = (call: HttpCall, req: IncomingMessage, socket: Duplex, head: Buffer) => Promise<void>;
