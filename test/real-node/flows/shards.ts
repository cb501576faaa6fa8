// A StatefulSet that shards itself, as docs/tasks/shard-an-operator.md has it: 3, 7 and 3 pods again, and a new version that the manager rolls out with
// the canary first. The operator of the quickstart is away meanwhile, since it would work on the same objects.
import { expect } from "vitest";
import { parse } from "yaml";
import { blocksOf, readDocument } from "../../support/doc-blocks.ts";
import { eventually } from "../../support/eventually.ts";
import { operatorHome, operatorWorkload } from "../../support/install/operator.ts";
import { flow, type World } from "../world.ts";
import { HOME, OPERATOR_SELECTOR } from "./operator.ts";

const SHARDED = "shard-system";
const SET = "foo-operator";
const SERVED = Array.from({ length: 18 }, (_, index) => `shared-${String(index + 1).padStart(2, "0")}`);
const CHANGING = ["staging", ...SERVED.slice(0, 6)];
const SHARD_MS = 180_000;

export function shards(world: () => World): void {
  flow("shard an operator: 3 pods", world, async (own) => {
    await own.changes.stop();
    own.judge(SHARDED, []);
    await own.run("scale", "deployment", "foo", "foo-canary", "-n", HOME, "--replicas=0");
    await own.run("wait", "pod", "-n", HOME, "-l", OPERATOR_SELECTOR, "--for=delete", "--timeout=60s");
    await own.apply(...operatorHome(SHARDED));
    const names = ["preview", "staging", ...SERVED];
    await own.apply(...names.flatMap((name) => [namespaceOf(name), fooOf(name)]));
    await own.apply(shardingConfig());
    await own.run("wait", `shard/${SET}`, "-n", SHARDED, "--for=condition=InjectionReady", "--timeout=60s");
    await own.apply(operatorWorkload({ name: SET, kind: "StatefulSet", replicas: 3, version: "v1", namespace: SHARDED }));
    await even(own, 3);
    own.judge(SHARDED, CHANGING);
    own.changes.start(CHANGING.map((namespace) => ({ namespace, name: "one" })));
  });

  flow("scale the shards from 3 to 7", world, (own) => scale(own, 7));

  flow("roll out a new version, the canary first", world, async (own) => {
    const commands = blocksOf(readDocument("docs/tasks/shard-an-operator.md")).find(
      ({ section }) => section === "Roll out a new version",
    );
    const renamed = (commands?.text ?? "")
      .replaceAll("foo-system", SHARDED)
      .replace("example.com/foo-operator:v2", "test/go-foo:2");
    const sinceMs = Date.now();
    await own.bash(renamed);
    await eventually(async () => {
      const { spec, status } = await own.get<Rollout>("statefulset", SET, "-n", SHARDED);
      expect([status.updatedReplicas, status.readyReplicas]).toEqual([spec.replicas, spec.replicas]);
      const { status: shard } = await own.get<{ status: { rollout: { done: number; total: number } } }>(
        "shard",
        SET,
        "-n",
        SHARDED,
      );
      expect(shard.rollout.done).toBe(spec.replicas);
    }, SHARD_MS);
    expect(evicted(own, sinceMs)[0]).toBe(`${SET}-0`);
    await even(own, 7);
  });

  flow("scale the shards from 7 to 3", world, (own) => scale(own, 3));

  flow("leave with the sharded operator", world, async (own) => {
    await own.changes.stop();
    own.judge(HOME, []);
    await own.run("delete", "shardingconfig", SET, "-n", SHARDED, "--timeout=120s");
    await own.run("delete", "namespace", SHARDED, ...["preview", "staging"], ...SERVED, "--timeout=120s");
  });
}

interface Rollout {
  readonly spec: { readonly replicas: number };
  readonly status: { readonly updatedReplicas?: number; readonly readyReplicas?: number };
}

async function scale(world: World, replicas: number): Promise<void> {
  await world.run("scale", "statefulset", SET, "-n", SHARDED, `--replicas=${replicas}`);
  await even(world, replicas);
}

/** Waits until all pods serve and the namespaces are divided evenly among the normal shards, with nothing left to do. */
async function even(world: World, pods: number): Promise<void> {
  await eventually(
    async () => {
      const table = await world.run("get", "shard", "-n", SHARDED, "--no-headers");
      const rows = table
        .trim()
        .split("\n")
        .map((line) => line.split(/\s+/));
      expect(rows.find(([name]) => name === SET)?.join(" ")).toMatch(new RegExp(` ${pods}/${pods} \\d+ True True InSync `));
      const counts = rows.filter(([name = ""]) => name.endsWith("-normal")).map((row) => Number(row[4]));
      expect(counts).toHaveLength(pods - 1);
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    },
    { withinMs: SHARD_MS, everyMs: 500 },
  );
}

/** The pods that were evicted since then, in order. */
function evicted(world: World, sinceMs: number): string[] {
  return world.kube.audit().flatMap(({ objectRef, responseStatus, requestReceivedTimestamp }) => {
    const isEviction =
      objectRef?.resource === "pods" && objectRef.subresource === "eviction" && (responseStatus?.code ?? 500) < 300;
    return isEviction && Date.parse(requestReceivedTimestamp) >= sinceMs ? [objectRef.name ?? ""] : [];
  });
}

/** That of the page, in another namespace. */
function shardingConfig(): object {
  const yaml = blocksOf(readDocument("docs/tasks/shard-an-operator.md")).find(({ info }) => info === "yaml")?.text ?? "";
  const config = parse(yaml) as { metadata: object };
  return { ...config, metadata: { ...config.metadata, namespace: SHARDED } };
}

function namespaceOf(name: string): object {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name } };
}

function fooOf(namespace: string): object {
  return { apiVersion: "demo.ctrlmesh.io/v1", kind: "Foo", metadata: { name: "one", namespace }, spec: { message: "first" } };
}
