// The sections whose `sh` blocks test/nightly/install-guide.test.ts runs, in its order, on one control plane. test/real-node runs some of them.
import { chartAlerts } from "./alert-rules.ts";

export interface GuideSection {
  readonly page: string;
  readonly section: string;
}

const of = (page: string, ...sections: readonly string[]): GuideSection[] => sections.map((section) => ({ page, section }));

const alerts = chartAlerts().groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));

export const GUIDE = {
  install: [...of("docs/quickstart.md", "Install the mesh"), ...of("docs/tasks/install.md", "Install")],
  divide: [
    ...of("docs/quickstart.md", "Start the operator"),
    ...of("docs/tasks/adopt-an-operator.md", "Check quotas and limits", "Adopt an operator"),
    ...of("docs/quickstart.md", "Divide it"),
  ],
  /** With the labels of the alert as variables. */
  runbook: of("docs/troubleshooting.md", ...alerts),
  move: of("docs/quickstart.md", "Move a namespace"),
  refuse: of("docs/quickstart.md", "See a refused write"),
  goBack: of("docs/tasks/move-namespaces.md", "Move", "Stop", "Go back"),
  freeze: of("docs/tasks/freeze-a-namespace.md", "Freeze", "Thaw"),
  look: of("docs/tasks/install.md", "If something does not work"),
  upgrade: of("docs/tasks/upgrade.md", "The manager", "Roll the sidecars", "Go back"),
  lookAtManager: of("docs/tasks/break-glass.md", "Before you do anything"),
  stopOperator: of("docs/tasks/break-glass.md", "Stop one operator now"),
  startWithoutManager: of("docs/tasks/break-glass.md", "The manager is gone and pods must start"),
  takeOut: of("docs/tasks/break-glass.md", "Take one operator out now"),
  comeBack: of("docs/tasks/break-glass.md", "Come back"),
  stopSubset: of("docs/tasks/break-glass.md", "The pods of one subset must go now"),
  endWait: of("docs/tasks/break-glass.md", "Nobody may write in a namespace"),
  leave: of("docs/tasks/leave.md", "Remove the mesh"),
  migrate: of("docs/migration.md", "From KusionStack"),
};
