// The objects in files of YAML or JSON, as kubectl reads them. Pure.
import { type DocumentOptions, type ParseOptions, parseAllDocuments, type SchemaOptions, type Tags, type YAMLError } from "yaml";
import { z } from "zod";
import { KRUISE_GROUP, KUSIONSTACK_GROUP } from "../../api/kind.ts";
import { dnsLabelSchema } from "../../api/names.ts";
import { formatProblem, validate } from "../../api/problems.ts";
import { errorMessage } from "../../base/errors.ts";
import type { KubeObject } from "../../kube/types.ts";
import { failure } from "../frame/command.ts";
import { oneLine } from "../frame/output.ts";

export interface FileObject {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly metadata?: { readonly namespace?: unknown; readonly name?: unknown } | null;
  readonly items?: unknown;
}

const NAMESPACE = z.object({
  apiVersion: z.literal("v1"),
  kind: z.literal("Namespace"),
  metadata: z.object({ name: dnsLabelSchema, labels: z.record(z.string(), z.string()).optional() }),
});

interface ReadFile {
  readonly objects: readonly FileObject[];
  /** What cannot be read, and where it stands. */
  readonly problems: readonly { readonly object: string; readonly problem: string }[];
}

/** YAML 1.1, in which `yes` is true and `<<` merges, but with times and dates as texts. */
const OPTIONS: ParseOptions & DocumentOptions & SchemaOptions = { version: "1.1", customTags: withoutTimes, logLevel: "error" };

/** The objects of all documents, also those in lists. */
export function readObjects(text: string): ReadFile {
  const objects: FileObject[] = [];
  const problems: { object: string; problem: string }[] = [];
  for (const [index, document] of parseAllDocuments(text, OPTIONS).entries()) {
    const report = ({ message }: { readonly message: string }) =>
      problems.push({ object: `document ${index + 1}`, problem: message.split("\n")[0] ?? message });
    const broken = document.errors.find((error) => !isDuplicate(error));
    if (broken !== undefined) {
      report(broken);
      continue;
    }
    try {
      const items = itemsOf(document.toJS());
      // kubectl takes the last one of two equal keys. In objects of others that is not our business.
      const duplicates = items.some(isOurs) ? document.errors : [];
      duplicates.forEach(report);
      if (duplicates.length === 0) objects.push(...items);
    } catch (error) {
      // Aliases that grow without end, or that nothing defines.
      report({ message: errorMessage(error) });
    }
  }
  return { objects, problems };
}

function isDuplicate({ code }: YAMLError): boolean {
  return code === "DUPLICATE_KEY";
}

function withoutTimes(tags: Tags): Tags {
  const isTime = (tag: Tags[number]) =>
    typeof tag === "object" && (tag.format === "TIME" || tag.tag === "tag:yaml.org,2002:timestamp");
  return tags.filter((tag) => !isTime(tag));
}

/** @param lists the lists around it: by an alias, a list can contain itself */
function itemsOf(value: unknown, lists: readonly unknown[] = []): FileObject[] {
  if (typeof value !== "object" || value === null) return [];
  if (lists.includes(value)) throw failure("a list contains itself");
  const object: FileObject = value;
  if (!String(object.kind).endsWith("List") || !Array.isArray(object.items)) return [object];
  return object.items.flatMap((item) => itemsOf(item, [...lists, value]));
}

/** True for the kinds of Controller Mesh. */
export function isOurs({ apiVersion }: FileObject): boolean {
  return [KRUISE_GROUP, KUSIONSTACK_GROUP].includes(String(apiVersion).split("/")[0] ?? "");
}

/** KIND NAMESPACE/NAME. */
export function titleOf({ kind, metadata }: FileObject): string {
  const { namespace, name } = metadata ?? {};
  return oneLine(`${kind} ${[namespace, name].filter((part) => part !== undefined).join("/") || "without a name"}`);
}

/** The Namespaces of a file, and nothing else. @throws MeshError `COMMAND_FAILED` */
export function readNamespaces(file: string, text: string): readonly KubeObject[] {
  const { objects, problems } = readObjects(text);
  const [first] = problems;
  if (first !== undefined) throw failure(`${file}: ${first.object}: ${first.problem}`);
  if (objects.length === 0) throw failure(`${file}: it has no Namespace`);
  const names = new Set<string>();
  return objects.map((object) => {
    const checked = validate(NAMESPACE, object);
    const [problem] = checked.ok ? [] : checked.problems;
    if (problem !== undefined) throw failure(`${file}: ${titleOf(object)}: ${formatProblem(problem)}`);
    const { name } = (object as KubeObject).metadata;
    if (names.has(name ?? "")) throw failure(`${file}: ${titleOf(object)}: it is in the file twice`);
    names.add(name ?? "");
    return object as KubeObject;
  });
}
