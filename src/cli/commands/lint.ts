// `ctrlmesh lint`: checks files with the schemas of the CRDs and the rules of the webhook, without a cluster.
import { parseAllDocuments } from "yaml";
import { KINDS, type KindName } from "../../api/crd.ts";
import { KRUISE_GROUP, KUSIONSTACK_GROUP } from "../../api/kind.ts";
import { formatProblem, validate } from "../../api/problems.ts";
import { errorMessage } from "../../base/errors.ts";
import { type Call, type Command, failure, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { counted, oneLine } from "../frame/output.ts";

interface Finding {
  readonly file: string;
  /** KIND NAMESPACE/NAME, or where in the file it stands. */
  readonly object: string;
  readonly problem: string;
}

export const LINT: Command = {
  name: "lint",
  args: "-f FILE",
  maxArgs: Number.POSITIVE_INFINITY,
  summary: "checks the objects of Controller Mesh in a file, without a cluster",
  flags: { filename: { type: "string", short: "f", multiple: true, value: "FILE", help: "YAML or JSON; - is stdin" } },
  async run({ args, flags, output, readFile }: Call) {
    const files = [...flags.texts("filename"), ...args];
    if (files.length === 0) throw usageError("name a file with -f");
    const checked = await Promise.all(files.map(async (file) => lintText(file, await readFile(file))));
    const problems = checked.flatMap((each) => each.problems);
    const count = checked.reduce((sum, { objects }) => sum + objects, 0);
    const lines = problems.map(({ file, object, problem }) => `${file}: ${object}: ${problem}`);
    output.data(
      "LintResult",
      { objects: count, problems },
      lines.length > 0 ? lines : [`${counted(count, "object")}, no problems`],
    );
    if (problems.length > 0) return EXIT.findings;
    if (count > 0) return EXIT.ok;
    output.hint("no file has an object of Controller Mesh: is it the right one?");
    return EXIT.failed;
  },
};

/** The problems of a file's objects. Objects of other groups are not looked at. */
export function lintText(file: string, text: string): { readonly objects: number; readonly problems: readonly Finding[] } {
  let objects = 0;
  const problems: Finding[] = [];
  for (const [index, document] of parseAllDocuments(text).entries()) {
    const report = (object: string, problem: string) => problems.push({ file, object, problem });
    for (const { message } of document.errors) report(`document ${index + 1}`, message.split("\n")[0] ?? message);
    if (document.errors.length > 0) continue;
    try {
      for (const object of itemsOf(document.toJS()).filter(isOurs)) {
        objects++;
        for (const problem of problemsOf(object)) report(titleOf(object), problem);
      }
    } catch (error) {
      // Aliases that grow without end, or that nothing defines.
      report(`document ${index + 1}`, errorMessage(error));
    }
  }
  return { objects, problems };
}

interface Typed {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly metadata?: { readonly namespace?: unknown; readonly name?: unknown } | null;
  readonly items?: unknown;
}

/** @param lists the lists around it: by an alias, a list can contain itself */
function itemsOf(value: unknown, lists: readonly unknown[] = []): Typed[] {
  if (typeof value !== "object" || value === null) return [];
  if (lists.includes(value)) throw failure("a list contains itself");
  const object: Typed = value;
  if (object.kind !== "List" || !Array.isArray(object.items)) return [object];
  return object.items.flatMap((item) => itemsOf(item, [...lists, value]));
}

function isOurs({ apiVersion }: Typed): boolean {
  return [KRUISE_GROUP, KUSIONSTACK_GROUP].includes(String(apiVersion).split("/")[0] ?? "");
}

function problemsOf(object: Typed): string[] {
  const kind = String(object.kind);
  if (!Object.hasOwn(KINDS, kind)) return [`kind: ${JSON.stringify(kind)} is none of: ${Object.keys(KINDS).join(", ")}`];
  const result = validate(KINDS[kind as KindName].schema, object);
  return result.ok ? [] : result.problems.map(formatProblem);
}

function titleOf({ kind, metadata }: Typed): string {
  const { namespace, name } = metadata ?? {};
  return oneLine(`${kind} ${[namespace, name].filter((part) => part !== undefined).join("/") || "without a name"}`);
}
