// Runs in a network namespace as root: a proxy on the loopback, an API server on the Service's addresses, and clients of several
// users that connect to those addresses. Prints as JSON which server answered each client.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";

const [addresses = [], uids = []] = JSON.parse(process.argv[2] ?? "[]") as [[string, number][], number[]];
const CLIENT = `
  const socket = require("node:net").connect(Number(process.argv[2]), process.argv[1]);
  socket.on("error", (error) => console.log(error.code));
  socket.pipe(process.stdout);
`;

async function serve(name: string, host: string, port: number): Promise<void> {
  const server = createServer((socket) => socket.end(name));
  server.listen(port, host);
  await once(server, "listening");
}

async function ask(uid: number, host: string, port: number): Promise<string> {
  const client = spawn(process.execPath, ["-e", CLIENT, host, String(port)], { uid, gid: uid, cwd: "/" });
  let answer = "";
  client.stdout.on("data", (text) => {
    answer += text;
  });
  await once(client, "close");
  return answer.trim();
}

for (const host of ["127.0.0.1", "::1"]) await serve("proxy", host, 5443);
for (const [host, port] of addresses) await serve("api", host, port);
const answers: Record<string, string> = {};
for (const uid of uids) {
  for (const [host, port] of addresses) answers[`${uid} ${host} ${port}`] = await ask(uid, host, port);
}
process.stdout.write(JSON.stringify(answers));
process.exit(0);
