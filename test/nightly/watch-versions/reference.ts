// What a watch through a proxy must have seen: the events of direct watches after its version, in its scope, of objects that its subset
// owns. A direct watch of each collection runs during the whole test.
import type { Probe, ProbeStream } from "../../support/probe.ts";
import { type Element, readWatch } from "../../support/slices.ts";
import { type Cell, listOf, type Scope, watchFrom } from "./cells.ts";

export interface Reference {
  /** What is wrong with a watch now; undefined if nothing. */
  problemOf(cell: Cell, owns: (namespace: string) => boolean): string | undefined;
  close(): void;
}

/** @param scopes have all paths and queries of the cells, except those of one namespace */
export async function startReference(direct: Probe, scopes: readonly Scope[]): Promise<Reference> {
  const streams = new Map<string, ProbeStream>();
  for (const scope of scopes) {
    const { resourceVersion } = await listOf(direct, scope, "application/json");
    streams.set(keyOf(scope), await watchFrom(direct, scope, "JSON", resourceVersion));
  }
  const eventsOf = ({ scope, version }: Cell, owns: (namespace: string) => boolean) => {
    const [, only] = /^\/api\/v1\/namespaces\/([^/]+)\//.exec(scope.path) ?? [];
    const stream = streams.get(keyOf(only === undefined ? scope : { ...scope, path: "/api/v1/configmaps" }));
    if (stream === undefined || stream.ended()) throw new Error(`no direct watch of ${scope.name}`);
    return changes(stream)
      .filter((event) => BigInt(event.version) > BigInt(version))
      .filter(({ namespace }) => only === undefined || namespace === only)
      .filter(({ namespace, name }) => scope.name === "clusterroles" || owns(namespace === "" ? name : namespace))
      .map(text);
  };
  return {
    problemOf(cell, owns) {
      const { stream } = cell;
      if (isExpired(stream)) return "410";
      if (stream.status !== 200) return `status ${stream.status}`;
      if (stream.ended()) return "closed";
      return firstDifference(changes(stream).map(text), eventsOf(cell, owns));
    },
    close() {
      for (const stream of streams.values()) stream.close();
    },
  };
}

/** True if the watch was answered 410, or ended with it. */
export function isExpired({ status, contentType, bytes }: ProbeStream): boolean {
  return (
    status === 410 || readWatch(contentType, bytes()).some(({ type, bytes }) => type === "ERROR" && bytes.includes("Expired"))
  );
}

const keyOf = ({ path, query }: Scope) => `${path}?${query}`;
const changes = ({ contentType, bytes }: ProbeStream): Element[] =>
  readWatch(contentType, bytes()).filter(({ type }) => type !== "BOOKMARK");
const text = ({ type, namespace, name, version }: Element) => `${type} ${namespace}/${name} at ${version}`;

function firstDifference(seen: readonly string[], expected: readonly string[]): string | undefined {
  const at = expected.findIndex((event, index) => event !== seen[index]);
  if (at >= 0) return `event ${at} is ${seen[at] ?? "missing"} instead of ${expected[at]}`;
  return seen.length > expected.length ? `${seen[expected.length]} is foreign` : undefined;
}
