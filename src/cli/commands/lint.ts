// `ctrlmesh lint`: checks files with the schemas of the CRDs and the rules of the webhook, without a cluster.
import { KINDS, type KindName } from "../../api/crd.ts";
import { formatProblem, validate } from "../../api/problems.ts";
import { type FileObject, isOurs, readObjects, titleOf } from "../apps/read-objects.ts";
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
      lines.length === 0 && count > 0 ? [`${counted(count, "object")}, no problems`] : lines,
    );
    if (problems.length > 0) return EXIT.findings;
    if (count > 0) return EXIT.ok;
    output.hint("no file has an object of Controller Mesh: is it the right one?");
    return EXIT.failed;
  },
};

/** The problems of a file's objects. Objects of other groups are not looked at. */
export function lintText(file: string, text: string): { readonly objects: number; readonly problems: readonly Finding[] } {
  const { objects, problems } = readObjects(text);
  const ours = objects.filter(isOurs);
  const found = ours.flatMap((object) => problemsOf(object).map((problem) => ({ object: titleOf(object), problem })));
  return { objects: ours.length, problems: [...problems, ...found].map((each) => ({ file, ...each })) };
}

function problemsOf(object: FileObject): string[] {
  const kind = String(object.kind);
  if (!Object.hasOwn(KINDS, kind)) return [`kind: ${JSON.stringify(kind)} is none of: ${Object.keys(KINDS).join(", ")}`];
  const result = validate(KINDS[kind as KindName].schema, object);
  return result.ok ? [] : result.problems.map(formatProblem);
}
