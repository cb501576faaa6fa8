// A manager by script: a real gRPC server on the loopback that does what a test says and remembers what proxies told it.
import { Server, ServerCredentials, type ServerDuplexStream, type UntypedHandleCall } from "@grpc/grpc-js";
import { loadMeshService } from "../../src/wire/load-proto.ts";
import type { ManagerMessage, ProxyMessage } from "../../src/wire/messages.ts";

export type ManagerStream = ServerDuplexStream<ProxyMessage, ManagerMessage>;

export interface ScriptedManager {
  readonly endpoint: string;
  /** Streams that are open now, oldest first. */
  readonly streams: readonly ManagerStream[];
  /** Messages of all streams, oldest first. */
  readonly received: ProxyMessage[];
  /** Sends on the newest stream. */
  send(message: ManagerMessage): void;
  /** Ends everything at once. Calling it again does nothing. */
  stop(): void;
}

/** @param port 0 for any free one */
export async function startManager(port = 0): Promise<ScriptedManager> {
  const server = new Server();
  const streams: ManagerStream[] = [];
  const received: ProxyMessage[] = [];
  const connect = (stream: ManagerStream) => {
    streams.push(stream);
    const gone = () => {
      const index = streams.indexOf(stream);
      if (index >= 0) streams.splice(index, 1);
    };
    stream.on("data", (message: ProxyMessage) => received.push(message));
    stream.on("end", () => {
      gone();
      stream.end();
    });
    stream.on("cancelled", gone);
    stream.on("error", gone);
  };
  server.addService(loadMeshService(), { Connect: connect as UntypedHandleCall });
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, number) =>
      error ? reject(error) : resolve(number),
    );
  });
  return {
    endpoint: `127.0.0.1:${bound}`,
    streams,
    received,
    send(message) {
      const stream = streams.at(-1);
      if (stream === undefined) throw new Error("no proxy is connected");
      stream.write(message);
    },
    stop: () => server.forceShutdown(),
  };
}
