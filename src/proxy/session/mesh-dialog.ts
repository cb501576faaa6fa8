// What is said on one stream after the registration: routes go to the intake, a leader that asks for the promise gets it, and a replica that
// does not lead names another. Invariant: a proxy that has promised anything, on this stream or before, takes routes only from a
// replica to which it has given its promise on this very stream. One for each stream; made by mesh-client.
import { MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { ManagerMessage, WelcomeMessage } from "../../wire/messages.ts";
import type { MeshStream } from "./mesh-stream.ts";
import type { Greeting } from "./registration.ts";
import type { DeltaAnswers, SnapshotIntake } from "./snapshot-intake.ts";

export interface MeshDialogDeps {
  readonly endpoint: string;
  /** What was said first. */
  readonly greeting: Greeting;
  /** Promises to follow no leader of a lower epoch; false if this one may not be followed. */
  promise(epoch: number): Promise<boolean>;
  readonly intake: Pick<SnapshotIntake, "take" | "takeDelta">;
  readonly log: Logger;
}

export interface MeshDialog {
  take(message: ManagerMessage, stream: MeshStream): void;
  /** Who leads, as the replica says. */
  readonly redirect: string | undefined;
  /** Routes came, so that the stream was good for something. */
  readonly hasBroughtRoutes: boolean;
}

export function createMeshDialog({ endpoint, greeting, promise, intake, log }: MeshDialogDeps): MeshDialog {
  /** The highest epoch that the registration says is promised; 0 if none. */
  const promised = greeting.registration.epoch ?? 0;
  /** Forgotten once it has been asked: a stream lasts for days, and the tables of its registration are large. */
  let toldAtFirst: Pick<Greeting, "tablesFor"> | undefined = greeting;
  // A manager from before there were epochs asks for no promise; it is followed by whoever has given none.
  let isFollowing = promised === 0;
  let hasWarned = false;
  let redirect: string | undefined;
  let hasBroughtRoutes = false;

  const follow = async ({ epoch, wantedTables = [] }: WelcomeMessage, stream: MeshStream) => {
    isFollowing = false;
    if (await promise(epoch)) {
      isFollowing = true;
      const tables = toldAtFirst?.tablesFor(wantedTables) ?? [];
      toldAtFirst = undefined;
      stream.send({ promise: { epoch, tables } });
    } else {
      stream.close(new MeshError("PROMISE_REFUSED", `following ${endpoint}: a leader after epoch ${epoch} was followed already`));
    }
  };
  const mayTakeRoutes = (): boolean => {
    if (!isFollowing && !hasWarned)
      log.warn({ endpoint, promised }, "routes ignored: they come from a replica to which nothing is promised");
    hasWarned ||= !isFollowing;
    hasBroughtRoutes ||= isFollowing;
    return isFollowing;
  };
  return {
    take(message, stream) {
      if ("snapshot" in message && message.snapshot) {
        if (mayTakeRoutes()) intake.take(message.snapshot, answersOn(stream));
      } else if ("delta" in message && message.delta) {
        if (mayTakeRoutes()) intake.takeDelta(message.delta, answersOn(stream));
      } else if ("welcome" in message && message.welcome) {
        void follow(message.welcome, stream);
      } else if ("redirect" in message && message.redirect) {
        redirect = message.redirect.endpoint || undefined; // "": the replica knows no leader
        stream.close();
      }
    },
    get redirect() {
      return redirect;
    },
    get hasBroughtRoutes() {
      return hasBroughtRoutes;
    },
  };
}

function answersOn(stream: MeshStream): DeltaAnswers {
  return {
    ack: (nonce, version) => stream.send({ ack: { nonce, version } }),
    nack: (nonce, version, problems) => stream.send({ nack: { nonce, version, problems } }),
    needsSnapshot: (nonce, version) => stream.send({ nack: { nonce, version, problems: [], needsSnapshot: true } }),
  };
}
