// `ctrlmesh recover`: closes the open breakers of a CircuitBreaker.
import { CIRCUIT_BREAKERS } from "../../api/resources.ts";
import { RECOVER_ANNOTATION } from "../../base/recover-annotation.ts";
import { type Call, type Command, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { accessFlags, clusterOptions, DRY_RUN, namespaceOf } from "../frame/flags.ts";
import { shellLine } from "../frame/output.ts";

export const RECOVER: Command = {
  name: "recover",
  args: "BREAKER",
  maxArgs: 1,
  summary: "closes the open breakers of a CircuitBreaker",
  flags: DRY_RUN,
  async run({ args: [name], flags, output, clock, cluster }: Call) {
    const breaker = name?.replace(/^(cbk|circuitbreakers?)\//, "") ?? "";
    if (breaker === "") throw usageError("name a CircuitBreaker");
    const connected = await cluster();
    const ref = { namespace: namespaceOf(flags, connected.namespace), name: breaker };
    const isDry = flags.isSet("dry-run");
    // Any new text closes them.
    const value = new Date(clock.now()).toISOString();
    await connected.patch(CIRCUIT_BREAKERS, ref, { metadata: { annotations: { [RECOVER_ANNOTATION]: value } } }, isDry);
    const { resource, group } = CIRCUIT_BREAKERS;
    const words = [
      "kubectl",
      "annotate",
      `${resource}.${group}`,
      ref.name,
      "-n",
      ref.namespace,
      "--overwrite",
      `${RECOVER_ANNOTATION}=${value}`,
    ];
    const kubectl = shellLine([...words, ...(isDry ? ["--dry-run=server"] : []), ...accessFlags(clusterOptions(flags))]);
    const note = isDry ? " (dry run: nothing was changed)" : "";
    output.data("Change", { ...ref, change: "recovered", dryRun: isDry, kubectl }, [
      `CircuitBreaker ${ref.namespace}/${ref.name}: its breakers are asked to close${note}`,
    ]);
    output.hint(`with kubectl: ${kubectl}`);
    return EXIT.ok;
  },
};
