// Writes the condition InjectionReady and nothing else, for tests of the webhooks that run without the reconciler of apps.
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { MUTATING_SELECTOR } from "../../src/manager/admission/configuration/configurations.ts";
import { createInjectionReady, type InjectionReadyOptions } from "../../src/manager/admission/configuration/injection-ready.ts";
import type { Apps } from "../../src/manager/apps/app.ts";
import { conditionOf } from "../../src/manager/status/facts.ts";
import { type Controller, type ControllerOptions, controllerOf } from "../../src/runtime/controller.ts";
import type { Reconciler } from "../../src/runtime/reconciler.ts";
import { writeStatus } from "../../src/runtime/status-writer.ts";

export interface WriterOptions extends Omit<ControllerOptions, "name" | "clock">, Omit<InjectionReadyOptions, "mutating"> {
  readonly client: KubeClient;
  readonly apps: Apps;
}

export function addInjectionReadyWriter(options: WriterOptions): Controller {
  const { client, apps, informers } = options;
  const mutating = informers.store(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_SELECTOR);
  const injection = createInjectionReady({ ...options, mutating });
  const reconciler: Reconciler = {
    async reconcile({ namespace, name }, signal) {
      const app = apps.get(name, namespace);
      const object = informers.store(VIRTUAL_APPS).get(name, namespace);
      if (app === undefined || object === undefined) return {};
      const { verdict, againMs } = injection.look(app, conditionOf(object.status, "InjectionReady"));
      await writeStatus(
        client,
        VIRTUAL_APPS,
        object,
        ({ metadata, status = {} }) => {
          const before = conditionOf(status, "InjectionReady");
          const others = (status.conditions ?? []).filter(({ type }) => type !== "InjectionReady");
          if (verdict === undefined || (before?.status === verdict.status && before.reason === verdict.reason)) return status;
          const observedGeneration = metadata.generation ?? 0;
          const row = { type: "InjectionReady", ...verdict, observedGeneration, lastTransitionTime: "2026-01-01T00:00:00Z" };
          return { ...status, conditions: [...others, row] };
        },
        { signal },
      );
      return againMs === undefined ? {} : { requeueAfterMs: againMs };
    },
  };
  return controllerOf({ ...options, name: "injection-ready" })
    .for(VIRTUAL_APPS)
    .watches(MUTATING_WEBHOOK_CONFIGURATIONS, () => apps.list().map(({ ref }) => ref), { selectors: MUTATING_SELECTOR })
    .withReconciler(reconciler);
}
