// A scripted manager: a real gRPC server on the loopback that follows the test and records the proxies' messages.
import {
  type Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type sendUnaryData,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import type { KeyCertificate } from "../../src/base/certificates.ts";
import type {
  CertificateReplyMessage,
  CertificateRequestMessage,
  ManagerMessage,
  ProxyMessage,
} from "../../src/mesh/contract/messages.ts";
import { CERTIFY, CONNECT } from "../../src/wire/load-proto.ts";

export type ManagerStream = ServerDuplexStream<ProxyMessage, ManagerMessage>;

/** An error instead of a certificate or a stream. */
export interface Refusal {
  /** A gRPC status code. */
  readonly code: number;
  readonly details: string;
}

export interface ManagerOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** By default plain text. */
  readonly tls?: KeyCertificate;
  /** Called for each call; by default every call is admitted. */
  readonly admit?: (metadata: Metadata) => Refusal | undefined;
  /** The epoch of the welcome that answers each registration; undefined: none is sent. Default 1. */
  readonly epoch?: number | undefined;
  /** The resource types that the welcome announces. Default none. */
  readonly types?: readonly string[];
  readonly certify?: (request: CertificateRequestMessage) => CertificateReplyMessage | Refusal;
}

export interface ScriptedManager {
  readonly endpoint: string;
  readonly port: number;
  /** The open streams, oldest first. */
  readonly streams: readonly ManagerStream[];
  /** Messages of all streams, oldest first. */
  readonly received: ProxyMessage[];
  /** The `authorization` of the calls, oldest first; "" if absent. */
  readonly authorizations: readonly string[];
  /** The certificate requests. */
  readonly requests: readonly CertificateRequestMessage[];
  /** Sends on the newest stream; an update once the proxy has promised there to follow. */
  send(message: ManagerMessage): void;
  /** Ends all streams and the server at once. A second call does nothing. */
  stop(): void;
}

/** @param port 0 for any free one */
export async function startManager(port = 0, options: ManagerOptions = {}): Promise<ScriptedManager> {
  const { host = "127.0.0.1", tls, admit = () => undefined, types = [], certify } = options;
  const epoch = "epoch" in options ? options.epoch : 1;
  const server = new Server();
  const streams: ManagerStream[] = [];
  const promised = new Set<ManagerStream>();
  const updates = new Map<ManagerStream, ManagerMessage[]>();
  const received: ProxyMessage[] = [];
  const authorizations: string[] = [];
  const requests: CertificateRequestMessage[] = [];

  const admitted = (metadata: Metadata) => {
    authorizations.push(metadata.get("authorization").join());
    return admit(metadata);
  };
  const connect = (stream: ManagerStream) => {
    const refusal = admitted(stream.metadata);
    stream.on("error", () => undefined);
    if (refusal !== undefined) {
      stream.emit("error", refusal);
      return;
    }
    streams.push(stream);
    const gone = () => {
      const index = streams.indexOf(stream);
      if (index >= 0) streams.splice(index, 1);
    };
    stream.on("data", (message: ProxyMessage) => {
      received.push(message);
      if ("promise" in message) {
        promised.add(stream);
        for (const waiting of updates.get(stream) ?? []) stream.write(waiting);
        updates.delete(stream);
      }
      if ("registration" in message && epoch !== undefined)
        stream.write({ welcome: { epoch, wantedTables: [], types: [...types] } });
    });
    stream.on("end", () => {
      gone();
      stream.end();
    });
    stream.on("cancelled", gone);
    stream.on("error", gone);
  };
  const answer = (
    call: ServerUnaryCall<CertificateRequestMessage, CertificateReplyMessage>,
    callback: sendUnaryData<CertificateReplyMessage>,
  ) => {
    requests.push(call.request);
    const result = admitted(call.metadata) ?? certify?.(call.request) ?? { code: 12, details: "no certificates here" };
    if ("code" in result) callback(result);
    else callback(null, result);
  };
  server.addService(
    { Connect: CONNECT, Certify: CERTIFY },
    { Connect: connect as UntypedHandleCall, Certify: answer as UntypedHandleCall },
  );
  const credentials = tls === undefined ? ServerCredentials.createInsecure() : sslOf(tls);
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`${host}:${port}`, credentials, (error, number) => (error ? reject(error) : resolve(number)));
  });
  return {
    endpoint: `${host}:${bound}`,
    port: bound,
    streams,
    received,
    authorizations,
    requests,
    send(message) {
      const stream = streams.at(-1);
      if (stream === undefined) throw new Error("no proxy is connected");
      if (!("update" in message) || promised.has(stream)) stream.write(message);
      else updates.set(stream, [...(updates.get(stream) ?? []), message]);
    },
    stop: () => server.forceShutdown(),
  };
}

function sslOf({ certPem, keyPem }: KeyCertificate): ServerCredentials {
  return ServerCredentials.createSsl(null, [{ private_key: Buffer.from(keyPem), cert_chain: Buffer.from(certPem) }], false);
}
