// The handler of a resource type answers each update once, or leaves that to a later update.
import type { UpdateMessage } from "../../wire/messages.ts";
import { acceptsType } from "../../wire/resource-type.ts";

export interface ResourceHandler {
  /** Optional features of the type. */
  readonly capabilities: readonly string[];
  take(update: UpdateMessage, answers: Answers): void;
  /** The manager has said whether it sends resources of this type. */
  announced?(isSent: boolean): void;
}

export interface Answers {
  ack(): void;
  nack(problems: readonly string[]): void;
  /** The delta is good, but the proxy does not enforce its base. */
  needsWhole(): void;
}

export type ResourceHandlers = Readonly<Record<string, ResourceHandler>>;

export function capabilitiesOf(handlers: ResourceHandlers): string[] {
  return Object.entries(handlers).flatMap(([type, { capabilities }]) => [acceptsType(type), ...capabilities]);
}
