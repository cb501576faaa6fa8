// The interface of a resource type. Each type is one constant, which both ends of the stream use.
// docs/design.md describes how to add a type.
import { createHash } from "node:crypto";
import type { z } from "zod";
import { parseBounded } from "../../base/bounded-json.ts";
import { errorMessage, MeshError } from "../../base/errors.ts";
import type { Immutable } from "../../base/json.ts";

export interface Versioned {
  /** Grows with every change. */
  readonly version: number;
  /** Hash of the configuration; equal digests mean equal configuration. */
  readonly digest: string;
}

export interface ResourceType<R extends Versioned> {
  /** The name on the wire. The capability is "type:NAME". */
  readonly name: string;
  /** The body of a whole resource. */
  encode(resource: R): Uint8Array;
  /** @throws ResourceInvalidError with every problem */
  decode(body: Uint8Array, head: Versioned): R;
  /** Absent if the type has no deltas. */
  readonly delta?: DeltaCodec<R>;
}

interface DeltaCodec<R extends Versioned> {
  /** The capability of a proxy that accepts these deltas. */
  readonly capability: string;
  /** Undefined if a delta cannot express the difference, or if the whole resource is as short. */
  encode(base: R, next: R): Uint8Array | undefined;
  /** @throws ResourceInvalidError with every field that does not fit the base */
  apply(base: R, body: Uint8Array, head: Versioned): R;
}

/** Half of a SHA-256, in hex: equal in every manager replica and after restarts. */
export function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 32);
}

/** A type whose body is JSON of the schema, which is its contract. */
export function jsonType<S extends z.ZodObject>(name: string, schema: S) {
  type Content = Immutable<z.output<S>>;
  const encoded = (content: Content) => Buffer.from(JSON.stringify(content));
  const type: ResourceType<Versioned & Content> = {
    name,
    encode: ({ version: _, digest: __, ...content }) => encoded(content as Content),
    decode: (body, head) => ({ ...head, ...(decodeJson(body, head, schema) as Content) }),
  };
  return { ...type, digest: (content: Content) => digestOf(encoded(content)) };
}

/** The capability of a proxy that accepts a type. */
export function acceptsType(name: string): string {
  return `type:${name}`;
}

/** A resource that cannot be enforced: code `RESOURCE_INVALID`, with its problems. */
export class ResourceInvalidError extends MeshError {
  readonly problems: readonly string[];

  /** Of very many problems, the first ones are kept: a body may have a million. */
  constructor(problems: readonly string[]) {
    const first = firstProblems(problems);
    super("RESOURCE_INVALID", `reading a resource: ${first.join("; ")}`);
    this.problems = first;
  }
}

const MAX_PROBLEMS = 20;

export function firstProblems(problems: readonly string[]): readonly string[] {
  if (problems.length <= MAX_PROBLEMS) return problems;
  const first = problems.slice(0, MAX_PROBLEMS - 1);
  return [...first, `and ${problems.length - first.length} more problems`];
}

export function headProblems({ version, digest }: Versioned): string[] {
  return [
    ...(Number.isSafeInteger(version) && version > 0 ? [] : [`version: ${version} is not positive`]),
    ...(digest === "" ? ["digest: missing"] : []),
  ];
}

/** Bound of the memory of a body, in bytes. A route with 10,000 namespaces takes 0.6 MB. */
export const MAX_BODY_MEMORY = 64 * 1024 * 1024;

/** @throws ResourceInvalidError with every problem, also of the head */
export function decodeJson<T>(body: Uint8Array, head: Versioned, schema: z.ZodType<T>, maxMemory = MAX_BODY_MEMORY): T {
  return checkJson(parseBody(body, head, maxMemory), head, schema);
}

/** @throws ResourceInvalidError if the body is no JSON, or takes more memory */
export function parseBody(body: Uint8Array, head: Versioned, maxMemory = MAX_BODY_MEMORY): unknown {
  try {
    return parseBounded(body, { left: maxMemory });
  } catch (error) {
    throw new ResourceInvalidError([...headProblems(head), `body: ${errorMessage(error)}`]);
  }
}

/** Like `decodeJson`, for a body that is parsed. */
export function checkJson<T>(value: unknown, head: Versioned, schema: z.ZodType<T>): T {
  const problems = headProblems(head);
  const read = schema.safeParse(value);
  for (const { path, message } of read.error?.issues ?? []) problems.push(`${path.join(".") || "body"}: ${message}`);
  if (problems.length > 0 || !read.success) throw new ResourceInvalidError(problems);
  return read.data;
}
