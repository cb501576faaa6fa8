// Carries out what the core decides about a stream's messages (src/mesh/link/proxy-dialog.ts): with the
// promise on the disk, the handlers of the resource types, and the stream.
import { MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { runMachine } from "../../base/machine.ts";
import type { ManagerMessage, UpdateMessage, WelcomeMessage } from "../../mesh/contract/messages.ts";
import { type DialogEffect, NEW_DIALOG, stepDialog } from "../../mesh/link/proxy-dialog.ts";
import type { Greeting } from "../../mesh/link/registration.ts";
import type { MeshStream } from "./mesh-stream.ts";
import type { Answers, ResourceHandlers } from "./resource-handler.ts";

export interface MeshDialogDeps {
  readonly endpoint: string;
  readonly greeting: Greeting;
  /** Promises to follow no leader of a lower epoch, even after a restart; false if it may not be followed. */
  promise(epoch: number): Promise<boolean>;
  readonly handlers: ResourceHandlers;
  readonly log: Logger;
}

export type MeshDialog = ReturnType<typeof createMeshDialog>;

// No closure may use the whole of the dependencies: they have the greeting, with its tables.
export function createMeshDialog({ endpoint, greeting, promise, handlers, log }: MeshDialogDeps) {
  const dialog = runMachine(NEW_DIALOG, stepDialog, carryOut);
  /** Dropped after its only use: a stream lasts for days, and the tables are large. */
  let tableSource: Pick<Greeting, "tablesFor"> | undefined = greeting;
  const { proxyVersion } = greeting.registration;
  let stream: Pick<MeshStream, "send" | "close"> = CLOSED;
  let hasWarned = false;

  const storePromise = async (epoch: number) => dialog.enter({ kind: "promised", epoch, isGiven: await promise(epoch) });

  function carryOut(effect: DialogEffect) {
    switch (effect.kind) {
      case "promise":
        void storePromise(effect.epoch);
        return;
      case "follow":
        return follow(effect.welcome);
      case "take":
        return take(effect.update);
      case "ignore":
        if (!hasWarned) log.warn({ endpoint }, "updates ignored: this replica has no promise of this proxy");
        hasWarned = true;
        return;
      case "close":
        return stream.close();
      case "refuse-epoch": {
        const message = `following ${endpoint}: a leader after epoch ${effect.epoch} was followed already`;
        return stream.close(new MeshError("PROMISE_REFUSED", message));
      }
      default:
        effect satisfies never;
    }
  }

  function follow({ epoch, wantedTables, types }: WelcomeMessage): void {
    for (const [type, handler] of Object.entries(handlers)) handler.announced?.(types.includes(type));
    const tables = tableSource?.tablesFor(wantedTables) ?? [];
    tableSource = undefined;
    stream.send({ promise: { epoch, tables } });
  }

  function take(message: UpdateMessage): void {
    const type = message.resource?.type ?? "";
    const answers = answersTo(message, stream);
    const handler = Object.hasOwn(handlers, type) ? handlers[type] : undefined;
    if (handler !== undefined) {
      handler.take(message, answers);
      return;
    }
    log.warn({ endpoint, type }, "resource of an unknown type refused");
    answers.nack([`resource type ${JSON.stringify(type)} is not known to this proxy (version ${proxyVersion})`]);
  }

  return {
    /** To be called before the first message is taken. */
    answerOn(opened: Pick<MeshStream, "send" | "close">): void {
      stream = opened;
    },
    take: (message: ManagerMessage) => dialog.enter({ kind: "message", message }),
    /** The replica has, or had until it named another leader, the proxy's promise. */
    get hasFollowed(): boolean {
      return dialog.state.hasFollowed;
    },
    /** The replica has the proxy's promise. */
    get isFollowing(): boolean {
      return dialog.state.kind === "following";
    },
    /** The leader that the replica has named. */
    get redirect(): string | undefined {
      return dialog.state.kind === "over" ? dialog.state.redirect : undefined;
    },
    get hasBroughtUpdates(): boolean {
      return dialog.state.hasBroughtUpdates;
    },
  };
}

const CLOSED = { send: () => undefined, close: () => undefined };

export function answersTo({ nonce, resource }: UpdateMessage, stream: Pick<MeshStream, "send">): Answers {
  const head = { type: resource?.type ?? "", nonce, version: resource?.version ?? 0 };
  return {
    ack: () => stream.send({ ack: head }),
    nack: (problems) => stream.send({ nack: { ...head, problems, needsWhole: false } }),
    needsWhole: () => stream.send({ nack: { ...head, problems: [], needsWhole: true } }),
  };
}
