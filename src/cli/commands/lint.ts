// `ctrlmesh lint`: checks files with the schemas of the CRDs and the rules of the webhook, without a cluster.
import { parseAllDocuments } from "yaml";
import { KINDS, type KindName } from "../../api/crd.ts";
import { KRUISE_GROUP, KUSIONSTACK_GROUP } from "../../api/kind.ts";
import { formatProblem, validate } from "../../api/problems.ts";
import { type Call, type Command, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { counted } from "../frame/output.ts";

interface Finding {
  readonly file: string;
  /** KIND NAMESPACE/NAME, or where in the file it stands. */
  readonly object: string;
  readonly problem: string;
}

export const LINT: Command = {
  name: "lint",
  args: "-f FILE",
  summary: "checks the objects of Controller Mesh in a file, without a cluster",
  flags: { filename: { type: "string", short: "f", value: "FILE", help: "YAML or JSON; - is stdin" } },
  async run({ args, flags, output, readFile }: Call) {
    const named = flags.text("filename");
    const files = [...(named === undefined ? [] : [named]), ...args];
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
    if (count === 0) output.hint("no file has an object of Controller Mesh");
    return problems.length > 0 ? EXIT.findings : EXIT.ok;
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
    for (const object of itemsOf(document.toJS())) {
      if (!isOurs(object)) continue;
      objects++;
      for (const problem of problemsOf(object)) report(titleOf(object), problem);
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

function itemsOf(value: unknown): Typed[] {
  if (typeof value !== "object" || value === null) return [];
  const object: Typed = value;
  return object.kind === "List" && Array.isArray(object.items) ? object.items.flatMap(itemsOf) : [object];
}

function isOurs({ apiVersion }: Typed): boolean {
  return [KRUISE_GROUP, KUSIONSTACK_GROUP].some((group) => String(apiVersion).startsWith(`${group}/`));
}

function problemsOf(object: Typed): string[] {
  const kind = String(object.kind);
  if (!Object.hasOwn(KINDS, kind)) return [`kind: ${JSON.stringify(kind)} is none of: ${Object.keys(KINDS).join(", ")}`];
  const result = validate(KINDS[kind as KindName].schema, object);
  return result.ok ? [] : result.problems.map(formatProblem);
}

function titleOf({ kind, metadata }: Typed): string {
  const { namespace, name } = metadata ?? {};
  return `${kind} ${[namespace, name].filter((part) => part !== undefined).join("/") || "without a name"}`;
}
