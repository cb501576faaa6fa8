// What is said on one stream after the registration: the leader gets its promise, updates go to the handlers
// of their types, and a replica that does not lead names another. Invariant: the proxy takes updates only
// from a replica to which it has given its promise on this very stream.
import { MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { ManagerMessage, UpdateMessage, WelcomeMessage } from "../../wire/messages.ts";
import type { MeshStream } from "./mesh-stream.ts";
import type { Greeting } from "./registration.ts";
import type { Answers, ResourceHandlers } from "./resource-handler.ts";

export interface MeshDialogDeps {
  readonly endpoint: string;
  /** What was sent first. */
  readonly greeting: Greeting;
  /** Promises to follow no leader of a lower epoch; false if this one may not be followed. */
  promise(epoch: number): Promise<boolean>;
  readonly handlers: ResourceHandlers;
  readonly log: Logger;
}

export interface MeshDialog {
  take(message: ManagerMessage, stream: MeshStream): void;
  /** The replica has the proxy's promise, so its updates are taken. */
  readonly isFollowing: boolean;
  /** The leader, if the replica named one. */
  readonly redirect: string | undefined;
  /** Updates came, so that the stream was of use. */
  readonly hasBroughtUpdates: boolean;
}

export function createMeshDialog({ endpoint, greeting, promise, handlers, log }: MeshDialogDeps): MeshDialog {
  /** Forgotten once it was asked: a stream lasts for days, and the tables are large. */
  let named: Pick<Greeting, "tablesFor"> | undefined = greeting;
  const { proxyVersion } = greeting.registration;
  let isFollowing = false;
  let hasWarned = false;
  let redirect: string | undefined;
  let hasBroughtUpdates = false;

  const handlerOf = (type: string) => (Object.hasOwn(handlers, type) ? handlers[type] : undefined);
  const follow = async ({ epoch, wantedTables, types }: WelcomeMessage, stream: MeshStream) => {
    isFollowing = false;
    if (await promise(epoch)) {
      isFollowing = true;
      for (const [type, handler] of Object.entries(handlers)) handler.announced?.(types.includes(type));
      const tables = named?.tablesFor(wantedTables) ?? [];
      named = undefined;
      stream.send({ promise: { epoch, tables } });
    } else {
      stream.close(new MeshError("PROMISE_REFUSED", `following ${endpoint}: a leader after epoch ${epoch} was followed already`));
    }
  };
  const update = (message: UpdateMessage, stream: MeshStream) => {
    if (!isFollowing) {
      if (!hasWarned) log.warn({ endpoint }, "updates ignored: this replica has no promise of this proxy");
      hasWarned = true;
      return;
    }
    hasBroughtUpdates = true;
    const type = message.resource?.type ?? "";
    const answers = answersTo(message, stream);
    const handler = handlerOf(type);
    if (handler !== undefined) return handler.take(message, answers);
    log.warn({ endpoint, type }, "resource of an unknown type refused");
    answers.nack([`resource type ${JSON.stringify(type)} is not known to this proxy (version ${proxyVersion})`]);
  };
  return {
    take(message, stream) {
      if ("update" in message && message.update) update(message.update, stream);
      else if ("welcome" in message && message.welcome) void follow(message.welcome, stream);
      else if ("redirect" in message && message.redirect) {
        redirect = message.redirect.endpoint || undefined; // "": the replica knows no leader
        stream.close();
      }
    },
    get isFollowing() {
      return isFollowing;
    },
    get redirect() {
      return redirect;
    },
    get hasBroughtUpdates() {
      return hasBroughtUpdates;
    },
  };
}

/** How a handler answers an update on the stream that it came on. */
export function answersTo({ nonce, resource }: UpdateMessage, stream: Pick<MeshStream, "send">): Answers {
  const head = { type: resource?.type ?? "", nonce, version: resource?.version ?? 0 };
  return {
    ack: () => stream.send({ ack: head }),
    nack: (problems) => stream.send({ nack: { ...head, problems, needsWhole: false } }),
    needsWhole: () => stream.send({ nack: { ...head, problems: [], needsWhole: true } }),
  };
}
