// The parts of undici that the proxy uses: the whole package costs 13 MB of memory and 35 ms of start-up
// more (measured; fetch, mocks, WebSocket and caches come with it). package.json pins the version.
declare module "undici/lib/dispatcher/pool.js" {
  import { Pool } from "undici";
  export default Pool;
}

declare module "undici/lib/dispatcher/client.js" {
  import { Client } from "undici";
  export default Client;
}

declare module "undici/lib/core/connect.js" {
  import { buildConnector } from "undici";
  export default buildConnector;
}
