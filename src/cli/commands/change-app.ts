// `ctrlmesh pause`, `resume` and `confirm`: each changes one app, and prints what kubectl would do.
import { annotationKey } from "../../api/annotations.ts";
import { appOf } from "../apps/app-of.ts";
import { applyChanges, patchOf } from "../apps/apply-changes.ts";
import { type AppObject, conditionOf, type FoundApp, pausedObjects } from "../apps/apps.ts";
import { type Call, type Command, failure } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { DRY_RUN } from "../frame/flags.ts";

interface Change {
  readonly objects: readonly AppObject[];
  /** A merge patch for each of the objects. */
  readonly patch: object;
}

export const PAUSE = appChange(
  "pause",
  "paused",
  "every namespace keeps its present owner, until resume",
  ({ kind, object }) => ({
    objects: [object],
    patch: { spec: kind.specWith({ paused: true }) },
  }),
);

/** Any object of a family pauses it. */
export const RESUME = appChange("resume", "resumed", "ends a pause: namespaces move as the rules ask", (app) => {
  const paused = pausedObjects(app);
  return { objects: paused.length === 0 ? [app.object] : paused, patch: { spec: app.kind.specWith({ paused: false }) } };
});

export const CONFIRM = appChange(
  "confirm",
  "confirmed",
  "lets the last edit move more namespaces than the limit allows",
  (app) => {
    const { generation } = app.object.metadata;
    const converged = conditionOf(app, "Converged");
    if (converged?.reason !== "ConfirmationRequired")
      throw failure(`${app.name} has no moves that wait for a confirmation (Converged: ${converged?.reason ?? "not known yet"})`);
    if (converged.observedGeneration !== generation)
      throw failure(`${app.name} was edited a moment ago, and the manager has not judged the edit yet: look at its status again`);
    return {
      objects: [app.object],
      patch: { metadata: { annotations: { [annotationKey("confirm-moves")]: String(generation) } } },
    };
  },
);

function appChange(name: string, done: string, summary: string, changeOf: (app: FoundApp) => Change): Command {
  return {
    name,
    args: "APP",
    maxArgs: 1,
    summary,
    flags: DRY_RUN,
    async run(call: Call) {
      const { cluster, app } = await appOf(call);
      const { objects, patch } = changeOf(app);
      const refs = objects.map(({ metadata }) => ({ namespace: app.namespace, name: metadata.name ?? "" }));
      await applyChanges(
        call,
        cluster,
        refs.map((ref) => patchOf(app.kind.resource, ref, patch, done)),
      );
      return EXIT.ok;
    },
  };
}
