// The handler of a resource type answers each update once, or leaves that to a later update.
import { errorMessage } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { UpdateMessage } from "../../mesh/contract/messages.ts";
import { acceptsType, ResourceInvalidError, type Versioned } from "../../mesh/contract/resource-type.ts";

export interface ResourceHandler {
  /** Optional features of the type. Default: none. */
  readonly capabilities?: readonly string[];
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
  return Object.entries(handlers).flatMap(([type, { capabilities = [] }]) => [acceptsType(type), ...capabilities]);
}

/** The whole resource of an update. Undefined if it cannot be read: then the answer is given, and the log has `refused`. */
export function takeWhole<T>(
  { resource, baseDigest }: UpdateMessage,
  answers: Answers,
  read: (body: Uint8Array, head: Versioned) => T,
  { log, refused }: { readonly log: Logger; readonly refused: string },
): T | undefined {
  if (resource === null) {
    answers.nack(["resource: missing"]);
    return undefined;
  }
  if (baseDigest !== "") {
    answers.needsWhole();
    return undefined;
  }
  const { body, version, digest } = resource;
  try {
    return read(body, { version, digest });
  } catch (error) {
    log.warn({ err: error, version }, refused);
    answers.nack(error instanceof ResourceInvalidError ? error.problems : [errorMessage(error)]);
    return undefined;
  }
}
