// The two parts of undici that the proxy uses, by their own paths: the whole package costs 13 MB of memory
// and 35 ms of start-up more (measured; fetch, mocks, WebSocket and caches come with it). The version is
// pinned in package.json.
declare module "undici/lib/dispatcher/pool.js" {
  import { Pool } from "undici";
  export default Pool;
}

declare module "undici/lib/core/connect.js" {
  import { buildConnector } from "undici";
  export default buildConnector;
}
