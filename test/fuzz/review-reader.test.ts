// What the reader of reviews picks out of a body is what JSON.parse gives, in any chunks and with any escapes. It refuses a name that comes twice.
import fc from "fast-check";
import { expect, it } from "vitest";
import { isMeshError } from "../../src/base/errors.ts";
import type { ReviewSubject } from "../../src/kube/admission-review.ts";
import { createReviewReader } from "../../src/kube/codec/review-reader.ts";
import { budget } from "../support/fuzz.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The reading by JSON.parse. */
function oracle(text: string): ReviewSubject | undefined {
  const objectOf = (value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
  const textOf = (value: unknown) => (typeof value === "string" ? value : "");
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  const review = objectOf(parsed);
  const request = objectOf(review?.request);
  const resource = objectOf(request?.resource);
  const { apiVersion, kind } = review ?? {};
  if (apiVersion !== "admission.k8s.io/v1" || kind !== "AdmissionReview" || request === undefined) return undefined;
  const operation = ["CREATE", "UPDATE", "DELETE", "CONNECT"].find((each) => each === request.operation);
  if (textOf(request.uid) === "" || textOf(resource?.resource) === "" || operation === undefined) return undefined;
  const metadataOf = (object: unknown) =>
    objectOf(object) === undefined ? undefined : (objectOf(objectOf(object)?.metadata) ?? {});
  const labelsOf = (metadata: Fields | undefined) => {
    const labels: Record<string, string> = Object.create(null);
    for (const [name, value] of Object.entries(objectOf(metadata?.labels) ?? {}))
      if (typeof value === "string") labels[name] = value;
    return metadata === undefined ? undefined : labels;
  };
  const metadata = metadataOf(request.object);
  return {
    apiVersion,
    uid: textOf(request.uid),
    resource: { group: textOf(resource?.group), version: textOf(resource?.version), resource: textOf(resource?.resource) },
    subresource: textOf(request.subResource),
    namespace: textOf(request.namespace),
    name: textOf(request.name) || (operation === "CREATE" ? textOf(metadata?.name) : ""),
    operation: operation as ReviewSubject["operation"],
    labels: labelsOf(metadata),
    oldLabels: labelsOf(metadataOf(request.oldObject)),
    dryRun: request.dryRun === true,
  };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

type Read = { readonly subject: ReviewSubject | undefined } | "refused";

function read(text: string, sizes: readonly number[]): Read {
  const whole = Buffer.from(text);
  const reader = createReviewReader();
  try {
    for (let at = 0, index = 0; at < whole.length; index++) {
      at += 1 + (sizes[index % sizes.length] ?? 0);
      reader.scan(Buffer.from(whole.subarray(0, at))); // another buffer each time, as when it grows
    }
  } catch (error) {
    if (isMeshError(error, "BAD_REQUEST")) return "refused";
    throw error;
  }
  return { subject: reader.subject };
}

/** A JSON text with members as a list, so that names may come twice. */
type Node =
  | { readonly members: readonly (readonly [string, Node])[] }
  | { readonly items: readonly Node[] }
  | { readonly raw: string };

const space = fc.constantFrom("", "", "", " ", "\n\t");
const raw = (text: string): Node => ({ raw: text });
const word = fc.constantFrom("shop", "", "é", "ŝ語", 'a"b\\', "constructor", "{[", "x".repeat(80));
const escaped = (text: string, seed: number) =>
  `"${[...text].map((char, at) => ((seed >> (at % 30)) & 1 && char.length === 1 ? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}` : JSON.stringify(char).slice(1, -1))).join("")}"`;
const textNode = fc.tuple(word, fc.nat()).map(([text, seed]) => raw(escaped(text, seed)));
const scalar = fc.oneof(textNode, fc.constantFrom("1", "-1.5e3", "null", "true", "false", "[]", "{}").map(raw));
const anything = fc.letrec<{ node: Node }>((tie) => ({
  node: fc.oneof(
    { depthSize: "small" },
    scalar,
    fc.array(tie("node"), { maxLength: 3 }).map((items): Node => ({ items })),
    fc
      .uniqueArray(fc.tuple(fc.constantFrom("metadata", "labels", "name", "uid", "request", "x"), tie("node")), {
        maxLength: 3,
        selector: ([name]) => name,
      })
      .map((members): Node => ({ members })),
  ),
})).node;
/** Mostly the part; sometimes something else in its place. */
const mostly = (node: fc.Arbitrary<Node>) => fc.oneof({ weight: 12, arbitrary: node }, { weight: 1, arbitrary: anything });
const constant = (text: string) => mostly(fc.constant(raw(JSON.stringify(text))));
/** Members in any order, some missing, beside others. */
const objectWith = (parts: Readonly<Record<string, fc.Arbitrary<Node>>>, isTwice: boolean): fc.Arbitrary<Node> =>
  fc
    .tuple(
      fc.tuple(...Object.entries(parts).map(([name, node]) => fc.tuple(fc.constant(name), node, fc.nat(15)))),
      fc.array(fc.tuple(fc.constantFrom("Metadata", "UID", "other", "__proto__", "kinds"), anything), { maxLength: 2 }),
      isTwice ? fc.option(fc.constantFrom(...Object.keys(parts)), { nil: undefined, freq: 8 }) : fc.constant(undefined),
      fc.infiniteStream(fc.nat(1_000)),
    )
    .map(([own, others, twice, order]): Node => {
      const members: (readonly [string, Node])[] = own.flatMap(([name, node, lost]) =>
        lost === 0 ? [] : [[name, node] as const],
      );
      const extra = new Map(others);
      const again = members.find(([name]) => name === twice);
      const all = [...members, ...extra, ...(again === undefined ? [] : [again])];
      return {
        members: all
          .map((member) => ({ member, by: order.next().value as number }))
          .sort((a, b) => a.by - b.by)
          .map(({ member }) => member),
      };
    });
const reviewWith = (isTwice: boolean) => {
  const labels = fc
    .uniqueArray(fc.tuple(word, scalar), { maxLength: 4, selector: ([name]) => name })
    .map((members): Node => ({ members }));
  const object = mostly(
    objectWith({ metadata: mostly(objectWith({ name: textNode, labels: mostly(labels) }, isTwice)), spec: anything }, isTwice),
  );
  const resource = objectWith({ group: textNode, version: textNode, resource: constant("pods") }, isTwice);
  const request = objectWith(
    {
      uid: constant("u-1"),
      operation: constant("CREATE"),
      namespace: textNode,
      name: textNode,
      subResource: textNode,
      dryRun: anything,
      resource: mostly(resource),
      object,
      oldObject: object,
      userInfo: anything,
    },
    isTwice,
  );
  return objectWith(
    { apiVersion: constant("admission.k8s.io/v1"), kind: constant("AdmissionReview"), request: mostly(request) },
    isTwice,
  );
};

function write(node: Node, seeds: Iterator<number>, between: Iterator<string>): string {
  const gap = () => between.next().value as string;
  if ("raw" in node) return node.raw;
  if ("items" in node) return `[${node.items.map((item) => `${gap()}${write(item, seeds, between)}${gap()}`).join()}]`;
  const members = node.members.map(([name, value]) => {
    const seed = seeds.next().value as number;
    return `${gap()}${escaped(name, seed % 4 === 0 ? seed >> 2 : 0)}${gap()}:${gap()}${write(value, seeds, between)}${gap()}`;
  });
  return `{${members.join()}}`;
}
const textOf = (node: fc.Arbitrary<Node>) =>
  fc
    .tuple(node, fc.infiniteStream(fc.nat()), fc.infiniteStream(space))
    .map(([root, seeds, between]) => write(root, seeds, between));
const sizes = fc.array(fc.nat(40), { minLength: 1, maxLength: 8 });

it("picks what JSON.parse gives", () => {
  fc.assert(
    fc.property(textOf(reviewWith(false)), sizes, (text, chunks) => {
      expect(read(text, chunks)).toEqual({ subject: oracle(text) });
    }),
    budget(),
  );
});

it("refuses a review in which a name comes twice, or reads it as JSON.parse where the name is none of its own", () => {
  fc.assert(
    fc.property(textOf(reviewWith(true)), sizes, (text, chunks) => {
      const got = read(text, chunks);
      if (got !== "refused") expect(got).toEqual({ subject: oracle(text) });
    }),
    budget(),
  );
});

it("reads changed bytes that are still JSON as JSON.parse does, or refuses them, and never throws anything else", () => {
  const edits = fc.array(
    fc.tuple(fc.nat(2_000), fc.constantFrom("", '"', "\\", "{", "}", "[", "]", ",", ":", "\ufffd", "\u0001", '"uid":"v",')),
    {
      minLength: 1,
      maxLength: 3,
    },
  );
  fc.assert(
    fc.property(textOf(reviewWith(true)), edits, sizes, (text, changes, chunks) => {
      let changed = text;
      for (const [at, part] of changes)
        changed = changed.slice(0, at % text.length) + part + changed.slice((at % text.length) + 1);
      const got = read(changed, chunks);
      if (got !== "refused" && isJson(changed)) expect(got).toEqual({ subject: oracle(changed) });
    }),
    budget(),
  );
});
