// The client programs of test/operators by name: how each is started, by which objects it elects, and what its view is worth.
import { fileURLToPath } from "node:url";
import { goProgram } from "./go-build.ts";

const file = (path: string) => fileURLToPath(new URL(`../operators/${path}`, import.meta.url));

/** A program of the catalog. */
export interface CatalogEntry {
  /** Its VirtualApp's name and its lock's. */
  readonly app: string;
  readonly title: string;
  /** Kinds of lock that it holds, all under one name. */
  readonly locks: readonly ("leases" | "configmaps" | "endpoints")[];
  /**
   * - `cache`: what it has seen is what there is;
   * - `events`: it is told of events, and not of what has gone while it did not watch.
   */
  readonly sees: "cache" | "events";
  /** Lists and watches that are open at a time. */
  readonly informers: number;
  readonly command: () => Promise<{ readonly command: string; readonly args: readonly string[] }>;
}

/** @param python the environment's python; undefined leaves the Python programs out */
export function clientCatalog(python: string | undefined): CatalogEntry[] {
  const goOld = (lock: string) => async () => ({ command: await goProgram("test/operators/go-old"), args: ["--lock", lock] });
  const programs: CatalogEntry[] = [
    {
      app: "go-old-configmaps",
      title: "client-go 0.20, locks on configmaps and leases",
      locks: ["configmaps", "leases"],
      sees: "cache",
      informers: 2,
      command: goOld("configmapsleases"),
    },
    {
      app: "go-old-endpoints",
      title: "client-go 0.20, locks on endpoints and leases",
      locks: ["endpoints", "leases"],
      sees: "cache",
      informers: 2,
      command: goOld("endpointsleases"),
    },
    {
      app: "node-client",
      title: "@kubernetes/client-node",
      locks: [],
      sees: "cache",
      informers: 2,
      command: async () => ({ command: process.execPath, args: [file("node-client/main.ts")] }),
    },
  ];
  if (python === undefined) return programs;
  const kopf = ["-m", "kopf", "run", "--standalone", "--all-namespaces", "--quiet", file("python/kopf_operator.py")];
  return [
    ...programs,
    {
      app: "python",
      title: "the Python client",
      locks: ["configmaps"],
      sees: "cache",
      informers: 2,
      command: async () => ({ command: python, args: ["-u", file("python/watching.py")] }),
    },
    {
      app: "kopf",
      title: "kopf",
      locks: [],
      sees: "events",
      informers: 4, // and namespaces, and CRDs
      command: async () => ({ command: python, args: kopf }),
    },
  ];
}
