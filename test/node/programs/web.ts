// A small HTTP server for the tests of the test node: it returns its name, and its files decide whether it is ready and healthy.
// With a certificate it is also a mutating webhook that labels objects.
import { existsSync, readFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { text } from "node:stream/consumers";

const { PORT = "8080", VERSION = "", READY_FILE = "", CERTIFICATES = "" } = process.env;
const say = (what: string) => process.stdout.write(`${Date.now()} ${what}\n`);

const answer: RequestListener = async (request, response) => {
  const isRefused = existsSync("/tmp/broken") || (request.url === "/ready" && READY_FILE !== "" && !existsSync(READY_FILE));
  if (request.url?.startsWith("/mutate")) {
    const review = JSON.parse(await text(request)) as { request: { uid: string } };
    const patch = [{ op: "add", path: "/metadata/labels", value: { seen: "yes" } }];
    const patchFields = { patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(patch)).toString("base64") };
    const answered = { ...review, response: { uid: review.request.uid, allowed: true, ...patchFields } };
    response.setHeader("content-type", "application/json").end(JSON.stringify(answered));
    return;
  }
  response.statusCode = isRefused ? 503 : 200;
  response.end(JSON.stringify({ version: VERSION, from: request.socket.remoteAddress }));
};

const server =
  CERTIFICATES === ""
    ? createServer(answer)
    : createTlsServer({ cert: readFileSync(`${CERTIFICATES}/tls.crt`), key: readFileSync(`${CERTIFICATES}/tls.key`) }, answer);
server.listen(Number(PORT), () => say(`up ${VERSION}`));
process.on("SIGTERM", () => {
  say("SIGTERM");
  process.exit(0);
});
