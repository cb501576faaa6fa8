// The flags that every command takes. Their names and meanings are kubectl's.
import type { Flags } from "./command.ts";

export const COMMON_FLAGS: Flags = {
  namespace: { type: "string", short: "n", value: "NAMESPACE", help: "default: the namespace of the context" },
  context: { type: "string", value: "NAME", help: "the context of the kubeconfig" },
  kubeconfig: { type: "string", value: "FILE", help: "the kubeconfig" },
  as: { type: "string", value: "USER", help: "the user to impersonate" },
  "request-timeout": { type: "string", value: "DURATION", help: "how long one request may take; default 5s" },
  output: { type: "string", short: "o", value: "json", help: "json: one document for programs" },
  help: { type: "boolean", short: "h", help: "show this text" },
};

export const ALL_NAMESPACES: Flags = {
  "all-namespaces": { type: "boolean", short: "A", help: "in all namespaces" },
};

export const DRY_RUN: Flags = {
  "dry-run": { type: "boolean", help: "change nothing; the API server checks the change" },
};
