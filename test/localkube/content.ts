// Negotiates the form of the answer and decodes the body. Answers are always JSON. Bodies may be JSON, YAML (apply) or protobuf,
// which kubectl and controller-runtime send for built-in kinds. Pure.
import { parse as parseYaml } from "yaml";
import { JSON_TYPE, PROTOBUF_TYPE } from "../../src/kube/media-types.ts";
import { StatusError } from "../../src/kube/status.ts";
import { badRequest } from "./failures.ts";
import { decodeProtobuf } from "./protobuf.ts";

/** The form of an answer: objects as they are, a Table, or metadata only. */
export type Form = "object" | "table" | "metadata";

export interface Negotiated {
  readonly form: Form;
  /** API version of Table or PartialObjectMetadata. */
  readonly version: "v1" | "v1beta1";
}

const PLAIN: Negotiated = { form: "object", version: "v1" };
const FORMS: Readonly<Record<string, Form>> = {
  Table: "table",
  PartialObjectMetadata: "metadata",
  PartialObjectMetadataList: "metadata",
};

/**
 * Chooses the first clause that localkube can serve.
 * @throws StatusError NotAcceptable
 */
export function negotiate(accept: string | undefined): Negotiated {
  if (accept === undefined || accept.trim() === "") return PLAIN;
  for (const clause of accept.split(",")) {
    const [type = "", ...parameters] = clause.split(";").map((part) => part.trim());
    if (type !== JSON_TYPE && type !== "*/*" && type !== "application/*") continue;
    const values = Object.fromEntries(parameters.map((parameter) => parameter.split("=", 2)));
    const as: unknown = values.as;
    if (as === undefined) return PLAIN;
    const form = typeof as === "string" && values.g === "meta.k8s.io" ? FORMS[as] : undefined;
    if (form !== undefined) return { form, version: values.v === "v1beta1" ? "v1beta1" : "v1" };
  }
  throw new StatusError("NotAcceptable", "only the following media types are accepted: application/json");
}

/**
 * Decodes a body. An empty body is undefined.
 * @throws StatusError UnsupportedMediaType or BadRequest
 */
export function decodeBody(body: Buffer, type: string): unknown {
  if (body.length === 0) return undefined;
  if (type === PROTOBUF_TYPE) return decodeProtobuf(body);
  const text = body.toString("utf8");
  try {
    // Apply bodies are YAML, which includes JSON. The JSON parser is tried first, as it is faster.
    if (!type.includes("yaml")) return JSON.parse(text) as unknown;
    return text.trimStart().startsWith("{") ? (JSON.parse(text) as unknown) : (parseYaml(text) as unknown);
  } catch (cause) {
    throw badRequest(`reading the body: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
}
