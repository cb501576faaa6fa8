// A client like an old one: it reads its CA once and its token for each request. It calls the API server on a new connection
// every 50 ms and prints the results each second. For the tests of the installed mesh.
import { readFileSync } from "node:fs";
import { get } from "node:https";

const FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";
const { KUBERNETES_SERVICE_HOST: host = "", KUBERNETES_SERVICE_PORT: port = "" } = process.env;
const ca = readFileSync(`${FOLDER}/ca.crt`);

let ok = 0;
let failed: string[] = [];
const call = (): Promise<void> =>
  new Promise((resolve) => {
    const headers = { authorization: `Bearer ${readFileSync(`${FOLDER}/token`, "utf8")}` };
    const request = get({ host, port, path: "/version", ca, headers, agent: false, timeout: 5_000 }, (response) => {
      response.resume().on("end", () => {
        if (response.statusCode === 200) ok++;
        else failed.push(`${response.statusCode}`);
        resolve();
      });
    });
    request.on("timeout", () => request.destroy(new Error("timed out")));
    request.on("error", (error) => {
      failed.push(error.message);
      resolve();
    });
  });

const say = () => {
  process.stdout.write(`${JSON.stringify({ at: Date.now(), ok, failed })}\n`);
  failed = [];
};
setInterval(say, 1_000);
process.on("SIGTERM", () => {
  say();
  process.exit(0);
});
for (;;) {
  await call();
  await new Promise((resolve) => setTimeout(resolve, 50));
}
