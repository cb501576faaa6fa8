import { readFileSync } from "node:fs";
import { describeKubeContract } from "./contract.ts";

describeKubeContract("real", async () => {
  const a = JSON.parse(readFileSync("/tmp/rk.out", "utf8"));
  return { server: a.server, caPem: readFileSync(a.ca, "utf8"), token: a.token, stop: async () => {} };
});
