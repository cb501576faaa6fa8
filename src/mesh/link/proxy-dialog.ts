// What a proxy does with the messages of one manager replica, on one stream. Pure. Invariant: it takes updates
// only from a replica that has its promise on this very stream. A proxy has one stream at a time: it opens the next
// one after the end of the last, so it takes and acknowledges nothing of an older leader after a newer promise.
//
//   Unanswered, Following => Promising   when a Welcome comes
//   Promising => Following               when the promise is stored
//   Promising => Over                    when a leader of a later epoch was followed already
//   any => Over                          when the replica names another leader
import type { Transition } from "../../base/machine.ts";
import type { ManagerMessage, UpdateMessage, WelcomeMessage } from "../contract/messages.ts";

export type Dialog = DialogState & {
  /** The replica had the proxy's promise at some time. */
  readonly hasFollowed: boolean;
  /** The replica has sent an update that was taken. */
  readonly hasBroughtUpdates: boolean;
};

type DialogState =
  | { readonly kind: "unanswered" }
  /** The promise to follow no leader before `welcome.epoch` is being stored. */
  | { readonly kind: "promising"; readonly welcome: WelcomeMessage }
  | { readonly kind: "following" }
  /** `redirect`: the leader that the replica has named. */
  | { readonly kind: "over"; readonly redirect: string | undefined };

export type DialogEvent =
  | { readonly kind: "message"; readonly message: ManagerMessage }
  /** `isGiven`: false if the proxy has promised to follow a leader of a later epoch. */
  | { readonly kind: "promised"; readonly epoch: number; readonly isGiven: boolean };

export type DialogEffect =
  /** Calls for `promised`, after the promise is stored. */
  | { readonly kind: "promise"; readonly epoch: number }
  /** Tell the handlers which types come, and send the promise with the wanted tables. */
  | { readonly kind: "follow"; readonly welcome: WelcomeMessage }
  | { readonly kind: "take"; readonly update: UpdateMessage }
  /** An update of a replica that is not followed. */
  | { readonly kind: "ignore" }
  /** The stream ends without an error, or with one. */
  | { readonly kind: "close" }
  | { readonly kind: "refuse-epoch"; readonly epoch: number };

export const NEW_DIALOG: Dialog = { kind: "unanswered", hasFollowed: false, hasBroughtUpdates: false };

export function stepDialog(dialog: Dialog, event: DialogEvent): Transition<Dialog, DialogEffect> {
  if (dialog.kind === "over") return { state: dialog, effects: [] };
  const { hasFollowed, hasBroughtUpdates } = dialog;
  if (event.kind === "promised") {
    // A later Welcome of the same stream takes the place of an earlier one.
    if (dialog.kind !== "promising" || dialog.welcome.epoch !== event.epoch) return { state: dialog, effects: [] };
    if (event.isGiven)
      return {
        state: { kind: "following", hasFollowed: true, hasBroughtUpdates },
        effects: [{ kind: "follow", welcome: dialog.welcome }],
      };
    return { state: over(dialog), effects: [{ kind: "refuse-epoch", epoch: event.epoch }] };
  }
  const { message } = event;
  if ("update" in message && message.update) {
    if (dialog.kind !== "following") return { state: dialog, effects: [{ kind: "ignore" }] };
    return { state: { ...dialog, hasBroughtUpdates: true }, effects: [{ kind: "take", update: message.update }] };
  }
  if ("welcome" in message && message.welcome) {
    const { welcome } = message;
    return {
      state: { kind: "promising", welcome, hasFollowed, hasBroughtUpdates },
      effects: [{ kind: "promise", epoch: welcome.epoch }],
    };
  }
  // The endpoint is "" if the replica knows no leader.
  if ("redirect" in message && message.redirect)
    return { state: over(dialog, message.redirect.endpoint || undefined), effects: [{ kind: "close" }] };
  return { state: dialog, effects: [] };
}

function over({ hasFollowed, hasBroughtUpdates }: Dialog, redirect?: string): Dialog {
  return { kind: "over", redirect, hasFollowed, hasBroughtUpdates };
}
