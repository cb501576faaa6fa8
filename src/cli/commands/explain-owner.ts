// `ctrlmesh explain owner`: who owns a namespace, as the sidecars enforce it. Invariant: no owner is computed here:
// each answer is that of a sidecar, with the version of its routes. Below them stand the rules that match by the spec.
import { z } from "zod";
import { askSidecarsOf } from "../apps/app-sidecars.ts";
import { findApp, listApps } from "../apps/apps.ts";
import { type Call, type Command, failure, NAMESPACE_WORDS, nameOf, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { namespaceOf } from "../frame/flags.ts";
import { printTable } from "../frame/table.ts";

const ANSWER = z.looseObject({
  owner: z.string().nullable(),
  subset: z.string().optional(),
  frozen: z.string().optional(),
  version: z.number().optional(),
});

export const EXPLAIN_OWNER: Command = {
  name: "explain owner",
  args: "NAMESPACE",
  maxArgs: 1,
  summary: "who owns a namespace, as the sidecars enforce it",
  flags: {
    app: { type: "string", value: "APP", help: "only this app; default: all apps of the namespace of -n" },
    resource: { type: "string", value: "RESOURCE.GROUP", help: "for rules that name resources, for example deployments.apps" },
  },
  async run({ args: [target], flags, output, cluster }: Call) {
    const namespace = nameOf(target, NAMESPACE_WORDS);
    if (namespace === "") throw usageError("name a namespace");
    const connected = await cluster();
    const home = namespaceOf(flags, connected.namespace);
    const app = flags.text("app");
    const apps = app === undefined ? await listApps(connected, home) : [await findApp(connected, app, home)];
    if (apps.length === 0) throw failure(`there is no app in namespace ${home}; -n names the namespace of the operator`);
    const [plural = "", ...group] = (flags.text("resource") ?? "").split(".");
    const query = new URLSearchParams({ namespace, group: group.join("."), resource: plural });
    const asked = await askSidecarsOf(connected, apps, { path: `/debug/owner?${query}`, schema: ANSWER }, output);
    const items = asked.map(({ app: of, pod, answer, problem }) => ({
      app: of,
      pod,
      subset: answer?.subset,
      version: answer?.version,
      owner: answer?.owner ?? undefined,
      frozen: answer?.frozen,
      problem,
    }));
    // Loaded only here, as for `plan`.
    const { explainedApps, explainedLines } = await import("../plan/explain-rules.ts");
    const explained = await explainedApps(connected, apps, namespace, output);
    printTable(output, {
      kind: "OwnerAnswerList",
      items,
      fields: { namespace, explained },
      notes: explained.flatMap(explainedLines),
      columns: {
        APP: ({ app: of }) => of,
        POD: ({ pod }) => pod,
        SUBSET: ({ subset }) => subset,
        ROUTE: ({ version }) => version,
        [`OWNER OF ${namespace}`]: ({ owner, frozen, problem }) =>
          frozen === undefined ? (owner ?? problem ?? "it has no routes yet") : `${owner}, frozen: ${frozen}`,
      },
      ifNone: "",
    });
    if (items.every(({ owner }) => owner === undefined)) throw failure("no sidecar has named an owner");
    return EXIT.ok;
  },
};
