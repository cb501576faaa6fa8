// What messages call the source objects of an app and their fields. Each source kind has its own words; the
// route carries them to the proxy.

export interface SourceWords {
  /** The kind of the source objects. */
  readonly kind: string;
  /**
   * What to edit to give objects to other subsets, up to the name of the app: "the route of the VirtualApp".
   */
  readonly rules: string;
  /** The field that names the operator's lock. */
  readonly lockField: string;
  /** The field that lists user agents for the default subset only; "" if the kind has none. */
  readonly agentsField: string;
}

/** The words if the route has none: an older manager made it. */
const NEUTRAL: SourceWords = {
  kind: "app",
  rules: "the rules of the app",
  lockField: "the field for the lock's name",
  agentsField: "the list of user agents",
};

/**
 * What to do about a lock that the app does not name. `lockName` is the name in the app; "" if it has none.
 */
export function unnamedLockText(found: string, lockName: string, { kind, lockField }: SourceWords = NEUTRAL): string {
  const [quoted, named] = [JSON.stringify(found), lockName === "" ? "none" : JSON.stringify(lockName)];
  const remedy =
    lockName === ""
      ? `set ${lockField} to ${quoted}`
      : `delete the ${kind}, wait until it is deleted, and create it again with ${lockField} ${quoted}`;
  return `${quoted} looks like a leader-election lock, and the ${kind} names ${named}: if it is the operator's lock, ${remedy}`;
}

interface OfApp {
  readonly app: { readonly namespace: string; readonly name: string };
  readonly words?: SourceWords | undefined;
}

/** What to edit to change who owns an object. */
export function editText({ app, words = NEUTRAL }: OfApp): string {
  return `edit ${words.rules} ${app.namespace}/${app.name}`;
}

/** Why a user agent is not served. `rule` is the entry of the list that matches it. */
export function excludedText(rule: string, { kind, agentsField }: SourceWords = NEUTRAL): string {
  return `this user agent is served in the default subset only; ${agentsField} of the ${kind} has ${JSON.stringify(rule)}`;
}
