// Golden tests of the injection: name.in.yaml (a pod as admission sees it, VirtualApps, settings) -> name.out.yaml (the webhook's
// answer). After a desired change: npx vitest run --project unit test/golden/injection.test.ts -u, and read the difference.
import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { validateVirtualApp } from "../../src/api/virtual-app.ts";
import { injectPod } from "../../src/manager/injection/inject-pod.ts";
import type { InjectionSettings } from "../../src/manager/injection/injection.ts";
import { applyPatch, SETTINGS } from "../support/injection.ts";
import { appOf } from "../support/source-apps.ts";

interface Input {
  readonly settings?: Partial<InjectionSettings>;
  /** Metadata, selector and configuration of each VirtualApp. */
  readonly apps: readonly { readonly metadata: object; readonly selector: object; readonly configuration?: object }[];
  readonly pod: unknown;
}

const folder = new URL("./injection/", import.meta.url);
const names = readdirSync(folder).flatMap((file) => /^(.*)\.in\.yaml$/.exec(file)?.[1] ?? []);

it.each(names)("injects %s", async (name) => {
  const input = parse(readFileSync(new URL(`${name}.in.yaml`, folder), "utf8")) as Input;
  const apps = input.apps.map(({ metadata, ...spec }) => {
    const checked = validateVirtualApp({
      apiVersion: "ctrlmesh.kruise.io/v1alpha1",
      kind: "VirtualApp",
      metadata,
      spec,
    });
    if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
    return appOf(checked.value);
  });
  const request = { pod: input.pod, namespace: "ops", apps, settings: { ...SETTINGS, ...input.settings } };
  const before = structuredClone(input.pod);
  const injection = injectPod(request);
  expect(input.pod).toEqual(before);
  const shown = injection.kind === "changed" ? { ...injection, patch: injection.patch.map(({ path }) => path) } : injection;
  if (injection.kind === "changed") {
    expect(applyPatch(input.pod, injection.patch)).toEqual(injection.pod);
    expect(injectPod({ ...request, pod: injection.pod })).toMatchObject({ kind: "unchanged", app: injection.app });
  }
  await expect(stringify(shown, { aliasDuplicateObjects: false, lineWidth: 0 })).toMatchFileSnapshot(
    `./injection/${name}.out.yaml`,
  );
});
