// The reports of a proxy in tests, which go to a function for each kind.
import type { Reports } from "../../src/mesh/contract/messages.ts";
import type { Report } from "../../src/proxy/session/session.ts";

export function reportTo(sinks: { readonly [K in keyof Reports]?: (value: Reports[K]) => void }): Report {
  return (kind, value) => sinks[kind]?.(value);
}
