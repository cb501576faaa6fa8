// `ctrlmesh inject`: what the webhook would add to the pods of a manifest.
import { stringify } from "yaml";
import { type FileObject, readObjects, titleOf } from "../apps/read-objects.ts";
import { type Call, type Command, failure, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { namespaceOf } from "../frame/flags.ts";
import { hasPods, podOf } from "../inject/pod-of.ts";
import { type Preview, previewInjection } from "../inject/preview-injection.ts";

interface Item extends Preview {
  /** KIND NAMESPACE/NAME. */
  readonly object: string;
}

export const INJECT: Command = {
  name: "inject",
  args: "-f FILE",
  maxArgs: 0,
  summary: "what the webhook would add to the pods of a manifest, which stays as it is",
  flags: { filename: { type: "string", short: "f", multiple: true, value: "FILE", help: "YAML or JSON; - is stdin" } },
  async run({ flags, output, readFile, cluster }: Call) {
    const files = flags.texts("filename");
    if (files.length === 0) throw usageError("name a file with -f");
    const objects: FileObject[] = [];
    for (const file of files) objects.push(...objectsIn(file, await readFile(file)));
    if (objects.length === 0) throw failure("no file has a Pod, or a workload with a pod template");
    const connected = await cluster();
    const home = namespaceOf(flags, connected.namespace);
    const items: Item[] = [];
    for (const object of objects) {
      const pod = podOf(object, home);
      if (pod === undefined) throw failure(`${titleOf(object)}: its metadata, its spec or its pod template has a wrong form`);
      items.push({ object: titleOf(object), ...(await previewInjection(connected, pod)) });
    }
    output.data("InjectionPreview", { items }, items.flatMap(linesOf));
    for (const { object, warnings } of items) for (const warning of warnings) output.hint(`${object}: ${warning}`);
    for (const { object } of items.filter(({ isRough }) => isRough))
      output.hint(`${object}: also has defaults of the API server, which refuses the same pod without labels`);
    return items.some(({ refusal }) => refusal !== undefined) ? EXIT.findings : EXIT.ok;
  },
};

function objectsIn(file: string, text: string): readonly FileObject[] {
  const { objects, problems } = readObjects(text);
  const [first] = problems;
  if (first !== undefined) throw failure(`${file}: ${first.object}: ${first.problem}`);
  return objects.filter(hasPods);
}

function linesOf({ object, app, added, refusal }: Item, at: number): string[] {
  const head = at === 0 ? [] : ["---"];
  if (refusal !== undefined) return [...head, `# ${object}: would be refused: ${refusal}`];
  if (app === undefined) return [...head, `# ${object}: no sidecar; why is said by: ctrlmesh explain inject POD`];
  if (added === undefined)
    return [...head, `# ${object}: a pod of app ${app}, to which nothing is added: it has its sidecar already`];
  const yaml = stringify(added, { lineWidth: 0, aliasDuplicateObjects: false }).trimEnd().split("\n");
  return [...head, `# ${object}: a pod of app ${app} gets`, ...yaml];
}
