// What the stream needs to know of a resource type. A type is one constant that implements this interface, and both ends of the stream
// use that constant; docs/design.md says how to add one. Pure.
import { MeshError } from "../base/errors.ts";

/** Common to the resources of all types. */
export interface Versioned {
  /** Grows with every change. */
  readonly version: number;
  /** Hash of the configuration; equal digests mean equal configuration. */
  readonly digest: string;
}

export interface ResourceType<R extends Versioned> {
  /** On the wire, and in capabilities as "type:NAME". */
  readonly name: string;
  /** The body of a whole resource. */
  encode(resource: R): Uint8Array;
  /** @throws ResourceInvalidError with every problem */
  decode(body: Uint8Array, head: Versioned): R;
  /** Absent: the type has no deltas. */
  readonly delta?: DeltaCodec<R>;
}

export interface DeltaCodec<R extends Versioned> {
  /** The capability of a proxy that takes these deltas. */
  readonly capability: string;
  /** The body of the difference; undefined if a delta cannot say it, or if the whole is as short. */
  encode(base: R, next: R): Uint8Array | undefined;
  /** @throws ResourceInvalidError naming every field that does not fit the base */
  apply(base: R, body: Uint8Array, head: Versioned): R;
}

/** The capability of a proxy that accepts a type. */
export function acceptsType(name: string): string {
  return `type:${name}`;
}

/** A resource that cannot be enforced: code `RESOURCE_INVALID`, with every problem. */
export class ResourceInvalidError extends MeshError {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super("RESOURCE_INVALID", `reading a resource: ${problems.join("; ")}`);
    this.problems = problems;
  }
}

/** The problems of a resource's head. */
export function headProblems({ version, digest }: Versioned): string[] {
  return [
    ...(Number.isSafeInteger(version) && version > 0 ? [] : [`version: ${version} is not positive`]),
    ...(digest === "" ? ["digest: missing"] : []),
  ];
}
