// The four sets of 1,000 names of namespaces by which placements are judged: each as a company might number or compose them.
const TEAMS = ["core", "web", "data", "pay", "ops", "ml", "geo", "sre", "crm", "erp"];
const APPS = [
  "api",
  "web",
  "job",
  "db",
  "cache",
  "auth",
  "mail",
  "cron",
  "ui",
  "log",
  "bus",
  "sync",
  "edge",
  "bot",
  "fts",
  "img",
  "pdf",
  "sms",
  "map",
  "kv",
  "s3",
  "etl",
  "hub",
  "gw",
  "id",
];
const ENVIRONMENTS = ["dev", "test", "stage", "prod"];

const numbered = (prefix: string, first: number, digits: number) =>
  Array.from({ length: 1000 }, (_, index) => `${prefix}-${String(first + index).padStart(digits, "0")}`);

export const NAME_SETS: readonly (readonly [title: string, names: readonly string[]])[] = [
  ["team-000 to team-999", numbered("team", 0, 3)],
  ["customer-0001 to customer-1000", numbered("customer", 1, 4)],
  ["ns-1 to ns-1000", numbered("ns", 1, 0)],
  [
    "team, app and environment",
    TEAMS.flatMap((team) => APPS.flatMap((app) => ENVIRONMENTS.map((env) => `${team}-${app}-${env}`))),
  ],
];
