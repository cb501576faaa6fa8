import { expect, test } from "vitest";
import { inClusterConnection } from "./connection.ts";

const env = { KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "443" };

test("a pod connects with its service account and reads the token again for every request", async () => {
  let token = "first\n";
  const readFile = async (path: string) => (path.endsWith("/token") ? token : `content of ${path}`);
  const connection = await inClusterConnection(env, readFile, { userAgent: "test", serviceAccountDir: "/sa" });
  expect(connection).toMatchObject({ server: "https://10.0.0.1:443", caPem: "content of /sa/ca.crt", userAgent: "test" });
  expect(await connection.token()).toBe("first");
  token = "second\n";
  expect(await connection.token()).toBe("second");
});

test("the server URL has an IPv6 host in brackets", async () => {
  const connection = await inClusterConnection({ ...env, KUBERNETES_SERVICE_HOST: "fd00::1" }, async () => "", {
    userAgent: "test",
  });
  expect(connection.server).toBe("https://[fd00::1]:443");
});

test("outside of a cluster the error names the missing variables", async () => {
  await expect(inClusterConnection({}, async () => "", { userAgent: "test" })).rejects.toMatchObject({ code: "NOT_IN_CLUSTER" });
});
