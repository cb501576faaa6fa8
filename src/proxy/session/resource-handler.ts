// What the proxy does with the resources of one type. Invariant: a handler answers each update once, or
// leaves that to a later update. The dialog with the manager looks up the handler of an update in a table, by
// the name of its type.
import type { UpdateMessage } from "../../wire/messages.ts";
import { acceptsType } from "../../wire/resource-type.ts";

export interface ResourceHandler {
  /** Optional features of the type that the proxy supports. */
  readonly capabilities: readonly string[];
  take(update: UpdateMessage, answers: Answers): void;
  /** The manager has said whether it sends resources of this type. */
  announced?(isSent: boolean): void;
}

/** How a handler answers one update, on the stream that it came on. */
export interface Answers {
  ack(): void;
  nack(problems: readonly string[]): void;
  /** Nothing is wrong with the delta, but the proxy does not enforce its base. */
  needsWhole(): void;
}

/** By name of the type. */
export type ResourceHandlers = Readonly<Record<string, ResourceHandler>>;

/** What a registration lists. */
export function capabilitiesOf(handlers: ResourceHandlers): string[] {
  return Object.entries(handlers).flatMap(([type, { capabilities }]) => [acceptsType(type), ...capabilities]);
}
