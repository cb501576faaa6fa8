// `ctrlmesh pause`, `resume` and `confirm`: the hands on one app. Each says what kubectl would do.
import { CONFIRM_MOVES, conditionOf, type FoundApp, findApp } from "../apps/apps.ts";
import { type Call, type Command, failure } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { DRY_RUN } from "../frame/flags.ts";

export const PAUSE = hand(
  "pause",
  "every namespace keeps its present owner, until resume",
  ({ kind }) => ({ spec: kind.specOf(true) }),
  "paused",
);

export const RESUME = hand(
  "resume",
  "ends a pause: namespaces move as the rules ask",
  ({ kind }) => ({ spec: kind.specOf(false) }),
  "resumed",
);

export const CONFIRM = hand(
  "confirm",
  "lets the last edit move more namespaces than the limit of moves allows",
  (app) => {
    const { name, generation } = app.object.metadata;
    const converged = conditionOf(app, "Converged");
    if (!converged?.message.includes(CONFIRM_MOVES))
      throw failure(`${name} has no moves that wait for a confirmation (Converged: ${converged?.reason ?? "not known yet"})`);
    if (converged.observedGeneration !== generation)
      throw failure(`${name} was edited a moment ago, and the manager has not judged the edit yet: look at its status again`);
    return { metadata: { annotations: { [CONFIRM_MOVES]: String(generation) } } };
  },
  "confirmed",
);

function hand(name: string, summary: string, patchOf: (app: FoundApp) => object, done: string): Command {
  return {
    name,
    args: "APP",
    summary,
    flags: DRY_RUN,
    async run({ args: [app], flags, output, cluster }: Call) {
      const connected = await cluster();
      const namespace = flags.text("namespace") ?? connected.namespace;
      const found = await findApp(connected, app, namespace);
      const { resource } = found.kind;
      const [patch, isDry] = [patchOf(found), flags.isSet("dry-run")];
      await connected.patch(resource, { namespace, name: app ?? "" }, patch, isDry);
      const equivalent = `kubectl patch ${resource.resource}.${resource.group} ${app} -n ${namespace} --type=merge -p '${JSON.stringify(patch)}'`;
      output.data("Change", { namespace, name: app, change: done, dryRun: isDry, kubectl: equivalent }, [
        `${resource.kind} ${namespace}/${app} ${done}${isDry ? " (dry run: nothing was changed)" : ""}`,
      ]);
      output.hint(`with kubectl: ${equivalent}`);
      return EXIT.ok;
    },
  };
}
