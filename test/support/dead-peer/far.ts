// The API server on the far side of the network: `node far.ts ADDRESS`. It sends half of the body of a list and then nothing.

import { answerJson } from "../fake-api.ts";
import { startFakeHttp2Api } from "../fake-http2-api.ts";

const api = await startFakeHttp2Api({
  host: process.argv[2] ?? "",
  script(req, res) {
    req.resume();
    const isOpenEnded = req.url?.includes("watch=1") || req.url === "/api/v1/pods";
    if (isOpenEnded) res.writeHead(200, { "content-type": "application/json" }).write("half\n");
    else answerJson(res, 200, {});
  },
});
process.stdout.write(`${JSON.stringify({ url: api.url, ca: api.ca.certPem })}\n`);
