// A scripted proxy: a real gRPC stream to a manager that follows the test and records the manager's messages.
import { connect } from "node:http2";
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  credentials as grpcCredentials,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import type {
  CertificateReplyMessage,
  ManagerMessage,
  ProxyMessage,
  RegistrationMessage,
} from "../../src/mesh/contract/messages.ts";
import { CERTIFY, CONNECT } from "../../src/wire/load-proto.ts";
import { claimsOf } from "./updates.ts";

/** How the proxy calls its manager; by default in plain text and anonymously. */
export interface Access {
  readonly credentials?: ChannelCredentials;
  /** The name in the manager's certificate. */
  readonly serverName?: string;
  readonly token?: string;
  /** True: the proxy does not send a promise after a welcome. */
  readonly isSilent?: boolean;
}

export interface ScriptedProxy {
  readonly received: readonly ManagerMessage[];
  /** True once the manager has accepted the registration. */
  readonly served: boolean;
  /** Undefined while the stream is open. `details` is "" if the manager ended the stream normally. */
  readonly ended: { readonly code: number; readonly details: string } | undefined;
  readonly call: ClientDuplexStream<ProxyMessage, ManagerMessage>;
  send(message: ProxyMessage): void;
  /** Sends bytes as a message, whatever they are. */
  sendBytes(bytes: Buffer): void;
  close(): void;
}

function openClient(endpoint: string, { credentials = grpcCredentials.createInsecure(), serverName }: Access): Client {
  return new Client(endpoint, credentials, {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_retries": 0,
    "grpc.max_receive_message_length": -1,
    "grpc.max_send_message_length": -1,
    ...(serverName === undefined ? {} : { "grpc.ssl_target_name_override": serverName }),
  });
}

function metadataOf({ token }: Access): Metadata {
  const metadata = new Metadata();
  if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
  return metadata;
}

/** Requests one certificate. @throws grpc-js' ServiceError */
export function certify(endpoint: string, publicKey: Uint8Array, access: Access): Promise<CertificateReplyMessage> {
  const client = openClient(endpoint, access);
  return new Promise<CertificateReplyMessage>((resolve, reject) => {
    client.makeUnaryRequest(
      CERTIFY.path,
      CERTIFY.requestSerialize,
      CERTIFY.responseDeserialize,
      { publicKey },
      metadataOf(access),
      (error, reply) => (reply === undefined ? reject(error) : resolve(reply)),
    );
  }).finally(() => client.close());
}

export function openProxy(endpoint: string, access: Access = {}): ScriptedProxy {
  const client = openClient(endpoint, access);
  let raw: Buffer | undefined;
  const call: ClientDuplexStream<ProxyMessage, ManagerMessage> = client.makeBidiStreamRequest(
    CONNECT.path,
    (message: ProxyMessage) => raw ?? CONNECT.requestSerialize(message),
    CONNECT.responseDeserialize,
    metadataOf(access),
  );
  const received: ManagerMessage[] = [];
  let served = false;
  let ended: ScriptedProxy["ended"];
  const finish = (code: number, details: string) => {
    ended ??= { code, details };
    client.close();
  };
  call.on("metadata", () => {
    served = true;
  });
  call.on("data", (message: ManagerMessage) => {
    received.push(message);
    if ("welcome" in message && !access.isSilent) call.write({ promise: { epoch: message.welcome.epoch, tables: [] } });
  });
  call.on("end", () => finish(0, ""));
  call.on("error", ({ code, details }: ServiceError) => finish(code, details));
  return {
    received,
    call,
    get served() {
      return served;
    },
    get ended() {
      return ended;
    },
    send: (message) => void call.write(message),
    sendBytes(bytes) {
      raw = bytes;
      call.write({ ack: { type: "", nonce: 0, version: 0 } });
      raw = undefined;
    },
    close() {
      call.cancel();
      client.close();
    },
  };
}

/** A proxy that sends these and then reads nothing, while its HTTP/2 answers pings. (A gRPC client would read one message ahead.) */
export function openStuckProxy(endpoint: string, ...messages: readonly ProxyMessage[]): { close(): void } {
  const session = connect(`http://${endpoint}`);
  const headers = { ":method": "POST", ":path": CONNECT.path, "content-type": "application/grpc", te: "trailers" };
  const stream = session.request(headers, { endStream: false });
  for (const part of [session, stream]) part.on("error", () => undefined);
  for (const message of messages) {
    const body = CONNECT.requestSerialize(message);
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(body.length, 1);
    stream.write(Buffer.concat([prefix, body]));
  }
  return { close: () => session.destroy() };
}

/** A registration of a pod that claims nothing. */
export function registrationOf(name: string, more: Partial<RegistrationMessage> = {}, namespace = "shop"): ProxyMessage {
  const pod = { namespace, name, uid: "uid-1" };
  const facts = { proxyVersion: "test", capabilities: ["type:routes"], streamNumber: 1, epoch: 0, route: claimsOf() };
  return { registration: { pod, ...facts, ...more } };
}
