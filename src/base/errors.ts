/**
 * The one error type of the project. Code that handles an error compares its `code`, never its message. The
 * message is lower case and names the operation: "listing leases: timed out".
 */
export class MeshError extends Error {
  readonly code: string;

  /** @param code stable and upper case, for example `SNAPSHOT_REJECTED` */
  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "MeshError";
    this.code = code;
  }
}

export function isMeshError(error: unknown, code: string): error is MeshError {
  return error instanceof MeshError && error.code === code;
}

/** The message of a thrown value, followed by the messages of its causes. */
export function errorMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${errorMessage(error.cause)}`;
}
