// The parts of prom-client that the services use: the whole package also loads OpenTelemetry, Node's cluster and
// what sends to a gateway (docs/performance.md). package.json pins the version.
declare module "prom-client/lib/counter.js" {
  import { Counter } from "prom-client";
  export default Counter;
}

declare module "prom-client/lib/gauge.js" {
  import { Gauge } from "prom-client";
  export default Gauge;
}

declare module "prom-client/lib/histogram.js" {
  import { Histogram } from "prom-client";
  export default Histogram;
}

declare module "prom-client/lib/registry.js" {
  import { Registry } from "prom-client";
  export default Registry;
}
