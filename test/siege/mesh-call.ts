// A call of the manager's gRPC service from an address of an attacker: HTTP/2 frames over a connection of its
// own (grpc-js cannot choose the address that it calls from).
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from "node:http2";
import type { Socket } from "node:net";
import type { ManagerMessage, ProxyMessage } from "../../src/mesh/contract/messages.ts";
import { CONNECT } from "../../src/wire/load-proto.ts";
import type { Endpoint } from "./attack.ts";
import { type Caller, dial } from "./dial.ts";

export interface MeshCall {
  readonly session: ClientHttp2Session;
  readonly stream: ClientHttp2Stream;
  send(message: ProxyMessage): void;
  /** Sends the bytes as one gRPC message. */
  sendBytes(bytes: Uint8Array): void;
  onMessage(take: (message: ManagerMessage) => void): void;
  /** Resolves with how the call has ended, or "kept" after the time. */
  over(holdMs: number): Promise<string>;
}

export interface MeshCallOptions {
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** "Connect" or "Certify"; the default is Connect. */
  readonly path?: string;
}

/** Undefined if there was no connection. */
export async function callMesh(
  caller: Caller,
  mesh: Endpoint,
  { token, headers = {}, path = CONNECT.path }: MeshCallOptions,
): Promise<MeshCall | undefined> {
  const socket = await dial(caller, mesh, { alpn: ["h2"] });
  if (socket === undefined) return undefined;
  const session = connectHttp2("https://manager", { createConnection: () => socket, maxSendHeaderBlockLength: 1024 * 1024 });
  const pass = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const stream = session.request(
    { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers", ...pass, ...headers },
    { endStream: false },
  );
  for (const part of [session, stream]) part.on("error", () => undefined);
  const sendBytes = (bytes: Uint8Array) => {
    if (!stream.writable) return;
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(bytes.length, 1);
    stream.write(Buffer.concat([prefix, bytes]));
  };
  return {
    session,
    stream,
    sendBytes,
    send: (message) => sendBytes(CONNECT.requestSerialize(message)),
    onMessage(take) {
      stream.on("data", readMessages(take));
    },
    over: (holdMs) => endOf(socket, session, stream, holdMs),
  };
}

function readMessages(take: (message: ManagerMessage) => void): (chunk: Buffer) => void {
  let bytes = Buffer.alloc(0);
  return (chunk) => {
    bytes = Buffer.concat([bytes, chunk]);
    while (bytes.length >= 5 && bytes.length >= 5 + bytes.readUInt32BE(1)) {
      const end = 5 + bytes.readUInt32BE(1);
      take(CONNECT.responseDeserialize(bytes.subarray(5, end)));
      bytes = bytes.subarray(end);
    }
  };
}

async function endOf(socket: Socket, session: ClientHttp2Session, stream: ClientHttp2Stream, holdMs: number): Promise<string> {
  let status = "";
  const note = (headers: Readonly<Record<string, unknown>>) => {
    if (headers["grpc-status"] !== undefined) status = `grpc ${headers["grpc-status"]}`;
    else if (headers[":status"] !== 200) status = `http ${headers[":status"]}`;
  };
  stream.on("response", note).on("trailers", note);
  const isOver = await new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => resolve(false), holdMs);
    const done = () => {
      clearTimeout(timer);
      resolve(true);
    };
    stream.once("close", done);
    socket.once("close", done);
    if (stream.closed || socket.destroyed) done();
  });
  stream.destroy();
  session.destroy();
  socket.destroy();
  return status || (isOver ? "cut off" : "kept");
}
