// The hostile servers as a process, so that their work is not that of the test. Arguments: the ways. Prints their URLs and CAs.
import { startHostileServer } from "./servers.ts";

const servers = await Promise.all(process.argv.slice(2).map(startHostileServer));
process.stdout.write(`${JSON.stringify({ servers: servers.map(({ url, caPem: ca }) => ({ url, ca })) })}\n`);
process.stdin.resume().once("end", () => process.exit(0));
