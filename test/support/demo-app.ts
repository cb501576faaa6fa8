// The VirtualApp of examples/demo/divide, with other names if a test needs them.
import { readFileSync } from "node:fs";
import { parse, stringify } from "yaml";

const FILE = new URL("../../examples/demo/divide/virtualapp.yaml", import.meta.url);

export interface DemoAppOptions {
  readonly namespace?: string;
  readonly name?: string;
  readonly webhook?: { readonly certDir: string; readonly port: number };
  /** The default is the file's InPlace, since most tests' pods are processes without a workload to replace them. */
  readonly onLoss?: "Restart" | "InPlace";
}

/** YAML of the app. Subset v2 owns namespaces labelled ns-type=canary-1 or named canary*. */
export function demoVirtualApp({
  namespace = "foo-system",
  name = "foo-operator",
  onLoss,
  webhook,
}: DemoAppOptions = {}): string {
  const app = parse(readFileSync(FILE, "utf8")) as { metadata: object; spec: { route: object } };
  return stringify({
    ...app,
    metadata: { name, namespace },
    spec: {
      ...app.spec,
      selector: { matchLabels: { component: name } },
      configuration: { controller: { leaderElectionName: name }, ...(webhook === undefined ? {} : { webhook }) },
      route: { ...app.spec.route, ...(onLoss === undefined ? {} : { onLoss }) },
    },
  });
}
