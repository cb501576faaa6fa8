// How the programs and the honest clients reach localkube.
import { readFileSync } from "node:fs";
import type { Child } from "../support/child-process.ts";

export interface ApiServer {
  readonly server: string;
  readonly kubeconfig: string;
  readonly caFile: string;
  readonly caPem: string;
  /** Of a cluster administrator. */
  readonly token: string;
}

/** Reads the ready line of test/localkube/main.ts. */
export function readApiServer({ ready }: Child): ApiServer {
  const caFile = String(ready.ca);
  const caPem = readFileSync(caFile, "utf8");
  return { server: String(ready.server), kubeconfig: String(ready.kubeconfig), caFile, caPem, token: String(ready.token) };
}
