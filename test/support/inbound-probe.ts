// Runs in a pod's network namespace as root: a proxy on 5445 and an operator on 9443, on all addresses, and clients that connect to port 9443 from
// the pod itself and from another network namespace. Prints as JSON which server answered each client.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";

const [outside = "", hosts = []] = JSON.parse(process.argv[2] ?? "[]") as [string, string[]];
const CLIENT = `
  const socket = require("node:net").connect(9443, process.argv[1]);
  socket.on("error", (error) => console.log(error.code));
  socket.pipe(process.stdout);
`;

async function serve(name: string, port: number): Promise<void> {
  const server = createServer((socket) => socket.end(name));
  server.listen(port, "::");
  await once(server, "listening");
}

async function ask(host: string, wrapper: readonly string[]): Promise<string> {
  const [command = "", ...args] = [...wrapper, process.execPath, "-e", CLIENT, host];
  const client = spawn(command, args);
  let answer = "";
  client.stdout.on("data", (text) => {
    answer += text;
  });
  await once(client, "close");
  return answer.trim();
}

await serve("proxy", 5445);
await serve("operator", 9443);
const answers: Record<string, string> = {};
for (const host of [...hosts, "127.0.0.1", "::1"]) answers[`pod ${host}`] = await ask(host, []);
for (const host of hosts) answers[`outside ${host}`] = await ask(host, ["ip", "netns", "exec", outside]);
process.stdout.write(JSON.stringify(answers));
process.exit(0);
