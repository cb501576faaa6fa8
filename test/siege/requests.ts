// The requests that attackers send: heads, and AdmissionReviews of every shape that a parser dislikes. Pure,
// and made once, since a shape has 7 MiB.

/** A little less than the most that a webhook reads (src/kube/admission-review.ts). */
const BODY_BYTES = 7 * 1024 * 1024 - 4096;

export function head(path: string, length: number, more: readonly string[] = []): string {
  const lines = ["host: localhost", "content-type: application/json", `content-length: ${length}`, ...more];
  return `POST ${path} HTTP/1.1\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`;
}

/** A whole request. */
export function post(path: string, body: Buffer | string): Buffer {
  const bytes = Buffer.from(body);
  return Buffer.concat([Buffer.from(head(path, bytes.length)), bytes]);
}

export interface ReviewOptions {
  readonly resource?: { readonly group: string; readonly version: string; readonly resource: string };
  readonly operation?: "CREATE" | "UPDATE" | "DELETE";
  readonly namespace?: string;
  readonly name?: string;
  readonly object?: unknown;
  readonly oldObject?: unknown;
}

const PODS = { group: "", version: "v1", resource: "pods" };

export function review({ resource = PODS, operation = "CREATE", namespace = "foo-system", ...more }: ReviewOptions): string {
  const request = { uid: "siege", kind: {}, resource, operation, namespace, name: "x", ...more };
  return JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
}

const MARK = '"MARK"';

/** 7 MiB that become much more, by name. */
const SHAPES: Readonly<Record<string, (bytes: number) => string>> = {
  nested: (bytes) => "[".repeat(bytes / 2) + "]".repeat(bytes / 2),
  empty: (bytes) => `[[]${",[]".repeat(bytes / 3)}]`,
  objects: (bytes) => `[{}${",{}".repeat(bytes / 3)}]`,
  deep: (bytes) => `${'{"a":'.repeat(bytes / 6)}1${"}".repeat(bytes / 6)}`,
  keys: (bytes) => `{${Array.from({ length: bytes / 12 }, (_, index) => `"k${index}":1`).join(",")}}`,
  zeros: (bytes) => `[0${",0".repeat(bytes / 2)}]`,
  text: (bytes) => `"${"x".repeat(bytes)}"`,
  unfinished: (bytes) => "[".repeat(bytes),
};

const shapes = new Map<string, string>();

/** The body of a review of a pod with such an object. @param number chooses the shape */
export function heavyReview(number: number, namespace: string): Buffer {
  const names = Object.keys(SHAPES);
  const name = names[number % names.length] ?? "nested";
  const shape = shapes.get(name) ?? SHAPES[name]?.(BODY_BYTES) ?? "";
  shapes.set(name, shape);
  const [before = "", after = ""] = review({ namespace, object: { metadata: { name: "x", labels: {} }, spec: "MARK" } }).split(
    MARK,
  );
  return Buffer.concat([before, shape, after].map((text) => Buffer.from(text)));
}

/** Makes all shapes. */
export function prepareHeavyReviews(): void {
  for (const number of Object.keys(SHAPES).keys()) heavyReview(number, "");
}
