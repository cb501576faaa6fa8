// One gRPC stream to one manager replica, and the dialog on it after the registration. Invariants: after
// `ended` nothing is sent or received; the proxy takes updates only from a replica that has its promise on
// this very stream.
import type { ClientDuplexStream, Metadata } from "@grpc/grpc-js";
import { MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { CONNECT } from "../../wire/load-proto.ts";
import type { ManagerMessage, ProxyMessage, UpdateMessage, WelcomeMessage } from "../../wire/messages.ts";
import type { ManagerChannel } from "../identity/manager-channel.ts";
import type { Greeting } from "./registration.ts";
import type { Answers, ResourceHandlers } from "./resource-handler.ts";

export interface MeshStream {
  /** Does nothing once the stream has ended. */
  send(message: ProxyMessage): void;
  /** `ended` resolves with the error. */
  close(error?: Error): void;
  /** Resolves with the error that ended the stream, if any. */
  readonly ended: Promise<Error | undefined>;
}

export interface MeshStreamOptions {
  readonly channel: ManagerChannel;
  readonly metadata: Metadata;
  readonly registration: ProxyMessage;
  readonly method?: typeof CONNECT;
  /** The other process has answered the handshake; the kernel of a stopped one only accepts connections. */
  onReachable(): void;
  onConnected(): void;
  onMessage(message: ManagerMessage): void;
}

export function openMeshStream(options: MeshStreamOptions): MeshStream {
  const { channel, method = CONNECT } = options;
  const call: ClientDuplexStream<ProxyMessage, ManagerMessage> = channel.makeBidiStreamRequest(
    method.path,
    method.requestSerialize,
    method.responseDeserialize,
    options.metadata,
  );
  let isOver = false;
  const { promise: ended, resolve } = Promise.withResolvers<Error | undefined>();
  const finish = (error?: Error) => {
    if (isOver) return;
    isOver = true;
    call.cancel();
    resolve(error);
  };
  channel.waitForReady(Number.POSITIVE_INFINITY, (error) => {
    if (!isOver && error === undefined) options.onReachable();
  });
  call.on("metadata", () => {
    if (!isOver) options.onConnected();
  });
  call.on("data", (message: ManagerMessage) => {
    if (!isOver) options.onMessage(message);
  });
  call.on("error", finish); // stays attached: `cancel` reports an error as well
  call.on("end", () => finish());
  call.write(options.registration);
  return {
    send(message) {
      if (!isOver) call.write(message);
    },
    close: finish,
    ended,
  };
}

export interface MeshDialogDeps {
  readonly endpoint: string;
  readonly greeting: Greeting;
  /** Promises to follow no leader of a lower epoch, even after a restart; false if it may not be followed. */
  promise(epoch: number): Promise<boolean>;
  readonly handlers: ResourceHandlers;
  readonly log: Logger;
}

export type MeshDialog = ReturnType<typeof createMeshDialog>;

interface DialogState {
  /** The replica has the proxy's promise. */
  isFollowing: boolean;
  /** The leader that the replica has named. */
  redirect: string | undefined;
  hasBroughtUpdates: boolean;
}

export function createMeshDialog({ endpoint, greeting, promise, handlers, log }: MeshDialogDeps) {
  /** Dropped after its only use: a stream lasts for days, and the tables are large. */
  let tableSource: Pick<Greeting, "tablesFor"> | undefined = greeting;
  const { proxyVersion } = greeting.registration;
  const state: DialogState = { isFollowing: false, redirect: undefined, hasBroughtUpdates: false };
  let hasWarned = false;

  const follow = async ({ epoch, wantedTables, types }: WelcomeMessage, stream: MeshStream) => {
    state.isFollowing = false;
    if (await promise(epoch)) {
      state.isFollowing = true;
      for (const [type, handler] of Object.entries(handlers)) handler.announced?.(types.includes(type));
      const tables = tableSource?.tablesFor(wantedTables) ?? [];
      tableSource = undefined;
      stream.send({ promise: { epoch, tables } });
    } else {
      stream.close(new MeshError("PROMISE_REFUSED", `following ${endpoint}: a leader after epoch ${epoch} was followed already`));
    }
  };
  const update = (message: UpdateMessage, stream: MeshStream) => {
    if (!state.isFollowing) {
      if (!hasWarned) log.warn({ endpoint }, "updates ignored: this replica has no promise of this proxy");
      hasWarned = true;
      return;
    }
    state.hasBroughtUpdates = true;
    const type = message.resource?.type ?? "";
    const answers = answersTo(message, stream);
    const handler = Object.hasOwn(handlers, type) ? handlers[type] : undefined;
    if (handler !== undefined) return handler.take(message, answers);
    log.warn({ endpoint, type }, "resource of an unknown type refused");
    answers.nack([`resource type ${JSON.stringify(type)} is not known to this proxy (version ${proxyVersion})`]);
  };
  return {
    take(message: ManagerMessage, stream: MeshStream): void {
      if ("update" in message && message.update) update(message.update, stream);
      else if ("welcome" in message && message.welcome) void follow(message.welcome, stream);
      else if ("redirect" in message && message.redirect) {
        state.redirect = message.redirect.endpoint || undefined; // "": the replica knows no leader
        stream.close();
      }
    },
    state,
  };
}

export function answersTo({ nonce, resource }: UpdateMessage, stream: Pick<MeshStream, "send">): Answers {
  const head = { type: resource?.type ?? "", nonce, version: resource?.version ?? 0 };
  return {
    ack: () => stream.send({ ack: head }),
    nack: (problems) => stream.send({ nack: { ...head, problems, needsWhole: false } }),
    needsWhole: () => stream.send({ nack: { ...head, problems: [], needsWhole: true } }),
  };
}
