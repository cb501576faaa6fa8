// Gives the operators work in every namespace, so that the audit log shows who writes where.
import { expect } from "vitest";
import { eventually } from "../eventually.ts";
import { FOOS, type Mesh } from "../mesh.ts";

/** Changes the Foo "one" of each namespace, and waits until each is reconciled. */
export async function reconcileAll(mesh: Mesh, namespaces: readonly string[]): Promise<void> {
  await Promise.all(
    namespaces.map(async (namespace) => {
      const { resourceVersion } = (await mesh.foo(namespace, "one")).metadata;
      const body = { spec: { message: `changed after ${resourceVersion}` } };
      await mesh.client.patch(FOOS, { namespace, name: "one" }, { type: "merge", body });
    }),
  );
  await eventually(async () => {
    const foos = await Promise.all(namespaces.map((namespace) => mesh.foo(namespace, "one")));
    const behind = foos.filter(({ metadata, status }) => status?.observedGeneration !== metadata.generation);
    expect(behind.map(({ metadata }) => metadata.namespace)).toEqual([]);
  }, 40_000);
}
