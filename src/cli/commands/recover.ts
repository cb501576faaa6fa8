// `ctrlmesh recover`: closes the open breakers of a CircuitBreaker.
import { CIRCUIT_BREAKERS } from "../../api/resources.ts";
import { RECOVER_ANNOTATION } from "../../base/recover-annotation.ts";
import { applyChanges, patchOf } from "../apps/apply-changes.ts";
import { type Call, type Command, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { DRY_RUN, namespaceOf } from "../frame/flags.ts";

export const RECOVER: Command = {
  name: "recover",
  args: "BREAKER",
  maxArgs: 1,
  summary: "closes the open breakers of a CircuitBreaker",
  flags: DRY_RUN,
  async run(call: Call) {
    const { args, flags, clock } = call;
    const name = args[0]?.replace(/^(cbk|circuitbreakers?)\//, "") ?? "";
    if (name === "") throw usageError("name a CircuitBreaker");
    const cluster = await call.cluster();
    const ref = { namespace: namespaceOf(flags, cluster.namespace), name };
    // Any new text closes them.
    const patch = { metadata: { annotations: { [RECOVER_ANNOTATION]: new Date(clock.now()).toISOString() } } };
    await applyChanges(call, cluster, [patchOf(CIRCUIT_BREAKERS, ref, patch, "is asked to close its breakers")]);
    return EXIT.ok;
  },
};
