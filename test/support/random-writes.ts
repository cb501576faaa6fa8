// A seeded script of writes over namespaces: creates, updates and deletes of ConfigMaps with contents that are hard for a reader of
// bytes (escapes, decoy metadata, large values). For tests that compare several readers.
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { isStatus } from "../../src/kube/status.ts";
import { seededRandom } from "./random.ts";

export interface RandomWritesOptions {
  readonly client: KubeClient;
  readonly namespaces: readonly string[];
  readonly seed: number;
  readonly forMs: number;
  /** Continues until this many writes have succeeded, for a busy machine. The default is 0. */
  readonly atLeast?: number;
  /** Concurrent writers, each with its own names. The default is 4. */
  readonly writers?: number;
}

const CONTENTS = [
  'a "quoted" \\ back\\\\slash {"metadata":{"namespace":"red-0"}} text',
  '}]},"items":[{"metadata":{"namespace":"blue-0"}}],"rows":[',
  "näme\u2028\u0001\t\n\u{1f600}",
  "",
  "x".repeat(70_000),
];

/** Writes until the time is over and the minimum is reached. @returns how many writes succeeded */
export async function randomWrites({
  client,
  namespaces,
  seed,
  forMs,
  atLeast = 0,
  writers = 4,
}: RandomWritesOptions): Promise<number> {
  const deadline = performance.now() + forMs;
  let writes = 0;
  const writer = async (index: number) => {
    const random = seededRandom(seed + index);
    const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)] as T;
    while (performance.now() < deadline || writes < atLeast) {
      const namespace = pick(namespaces);
      const name = `w${index}-${Math.floor(random() * 5)}`;
      const data = { content: pick(CONTENTS), turn: String(writes) };
      try {
        if (random() < 0.3) await client.delete(CONFIG_MAPS, { namespace, name });
        else if (random() < 0.5)
          await client.create(CONFIG_MAPS, { metadata: { namespace, name, labels: { odd: String(index % 2) } }, data });
        else await client.patch(CONFIG_MAPS, { namespace, name }, { type: "merge", body: { data } });
        writes++;
      } catch (error) {
        if (!isStatus(error, "NotFound") && !isStatus(error, "AlreadyExists")) throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: writers }, (_, index) => writer(index)));
  return writes;
}
