// The objects in files of YAML or JSON, as kubectl reads them. Pure.
import { parseAllDocuments } from "yaml";
import { KRUISE_GROUP, KUSIONSTACK_GROUP } from "../../api/kind.ts";
import { errorMessage } from "../../base/errors.ts";
import { failure } from "../frame/command.ts";
import { oneLine } from "../frame/output.ts";

export interface FileObject {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly metadata?: { readonly namespace?: unknown; readonly name?: unknown } | null;
  readonly items?: unknown;
}

interface ReadFile {
  readonly objects: readonly FileObject[];
  /** What cannot be read, and where it stands. */
  readonly problems: readonly { readonly object: string; readonly problem: string }[];
}

/** The objects of all documents, also those in lists. */
export function readObjects(text: string): ReadFile {
  const objects: FileObject[] = [];
  const problems: { object: string; problem: string }[] = [];
  for (const [index, document] of parseAllDocuments(text).entries()) {
    const report = (problem: string) => problems.push({ object: `document ${index + 1}`, problem });
    for (const { message } of document.errors) report(message.split("\n")[0] ?? message);
    if (document.errors.length > 0) continue;
    try {
      objects.push(...itemsOf(document.toJS()));
    } catch (error) {
      // Aliases that grow without end, or that nothing defines.
      report(errorMessage(error));
    }
  }
  return { objects, problems };
}

/** @param lists the lists around it: by an alias, a list can contain itself */
function itemsOf(value: unknown, lists: readonly unknown[] = []): FileObject[] {
  if (typeof value !== "object" || value === null) return [];
  if (lists.includes(value)) throw failure("a list contains itself");
  const object: FileObject = value;
  if (object.kind !== "List" || !Array.isArray(object.items)) return [object];
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
