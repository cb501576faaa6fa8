// The client programs of test/operators by name: how each is started, its kinds of lock, and how complete its view is.
import { fileURLToPath } from "node:url";
import { goProgram } from "../go-build.ts";
import { type JavaProgram, javaProgram } from "../java-build.ts";
import { rustProgram } from "../rust-build.ts";

const file = (path: string) => fileURLToPath(new URL(`../../operators/${path}`, import.meta.url));

/** A program of the catalog. */
export interface CatalogEntry {
  /** The name of its VirtualApp and of its lock. */
  readonly app: string;
  readonly title: string;
  /** The kinds of lock that it holds, all with the same name. */
  readonly locks: readonly ("leases" | "configmaps" | "endpoints")[];
  /**
   * - `cache`: the program sees the objects that exist
   * - `events`: the program sees events, but no deletion that happens while it has no watch
   */
  readonly sees: "cache" | "events";
  /** The number of informers of the program. */
  readonly informers: number;
  /**
   * - `config-map`: the ConfigMap `<foo>-by-<app>` for each Foo
   * - `status`: the status of each Foo
   * - `elsewhere`: once, a ConfigMap in the namespace `$ALSO_WRITE_TO`
   */
  readonly writes: readonly ("config-map" | "status" | "elsewhere")[];
  readonly command: () => Promise<{ readonly command: string; readonly args: readonly string[] }>;
}

export const KUBE_RS: CatalogEntry = {
  app: "kube-rs",
  title: "kube-rs",
  locks: [], // the library has none
  sees: "cache",
  informers: 2,
  writes: ["config-map", "status", "elsewhere"],
  command: async () => ({ command: await rustProgram("test/operators/kube-rs"), args: [] }),
};

export const JAVA_FABRIC8: CatalogEntry = {
  app: "fabric8",
  title: "fabric8",
  locks: ["leases"],
  sees: "cache",
  informers: 2,
  writes: ["config-map", "status", "elsewhere"],
  command: java("test/operators/fabric8"),
};

export const JAVA_OPERATOR_SDK: CatalogEntry = {
  app: "java-operator-sdk",
  title: "java-operator-sdk",
  locks: ["leases"],
  sees: "cache",
  informers: 2,
  writes: ["config-map", "status", "elsewhere"],
  command: java("test/operators/java-operator-sdk"),
};

/** Two such programs beside a control plane on two cores: little memory, a serial collector, and only the fast compiler. */
function java(program: JavaProgram): CatalogEntry["command"] {
  const flags = ["-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
  return async () => ({ command: "java", args: [...flags, "-jar", await javaProgram(program)] });
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
      writes: ["config-map"],
      command: goOld("configmapsleases"),
    },
    {
      app: "go-old-endpoints",
      title: "client-go 0.20, locks on endpoints and leases",
      locks: ["endpoints", "leases"],
      sees: "cache",
      informers: 2,
      writes: ["config-map"],
      command: goOld("endpointsleases"),
    },
    {
      app: "node-client",
      title: "@kubernetes/client-node",
      locks: [],
      sees: "cache",
      informers: 2,
      writes: ["config-map"],
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
      writes: ["config-map"],
      command: async () => ({ command: python, args: ["-u", file("python/watching.py")] }),
    },
    {
      app: "kopf",
      title: "kopf",
      locks: [],
      sees: "events",
      informers: 4, // and namespaces, and CRDs
      writes: ["status"],
      command: async () => ({ command: python, args: kopf }),
    },
  ];
}
