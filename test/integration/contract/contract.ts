// The part of the Kubernetes API's contract that localkube implements. One suite runs against localkube and against the real
// control plane with its controllers. Each assertion must hold for the real control plane.
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeAuth } from "./auth.ts";
import { type Client, createClient, eventually, type Target } from "./client.ts";
import { type Context, definition, install } from "./context.ts";
import { describeCustomResources } from "./custom-resources.ts";
import { describeDeletion } from "./deletion.ts";
import { describeDiscovery } from "./discovery.ts";
import { describeLists } from "./lists.ts";
import { describeObjects } from "./objects.ts";
import { describePatches } from "./patches.ts";
import { describeApply } from "./server-side-apply.ts";
import { describeStatefulSets } from "./stateful-sets.ts";
import { describeTables } from "./tables.ts";
import { describeWatches } from "./watches.ts";

export type { Target } from "./client.ts";

/** Declares the suite for one API server, which starts before the first test and stops after the last. */
export function describeKubeContract(name: string, getTarget: () => Promise<Target>): void {
  describe(name, () => {
    let target: Target | undefined;
    let client: Client | undefined;
    let count = 0;
    const goneInTheEnd: string[] = [];
    const run = randomBytes(3).toString("hex");

    beforeAll(async () => {
      target = await getTarget();
      client = createClient(target);
      await install(client, definition());
    });
    afterAll(async () => {
      await client?.close();
      await target?.stop();
    });

    const context: Context = {
      get client() {
        if (client === undefined) throw new Error("the API server did not start");
        return client;
      },
      get token() {
        return target?.token ?? "";
      },
      async namespace() {
        const own = `contract-${run}-${++count}`;
        const { code, body } = await context.client.post("/api/v1/namespaces", {
          apiVersion: "v1",
          kind: "Namespace",
          metadata: { name: own },
        });
        if (code !== 201) throw new Error(`creating a namespace: ${JSON.stringify(body)}`);
        return own;
      },
      goneInTheEnd: (path) => void goneInTheEnd.push(path),
    };
    describeDiscovery(context);
    describeObjects(context);
    describePatches(context);
    describeApply(context);
    describeDeletion(context);
    describeLists(context);
    describeWatches(context);
    describeTables(context);
    describeCustomResources(context);
    describeStatefulSets(context);
    describeAuth(context);
    it("in the end a deleted namespace is gone", async () => {
      expect(goneInTheEnd).toHaveLength(1);
      for (const path of goneInTheEnd) await eventually(async () => expect((await context.client.get(path)).code).toBe(404));
    });
  });
}
