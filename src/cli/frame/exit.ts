// The exit codes of ctrlmesh.

export const EXIT = {
  ok: 0,
  /** The command could not do it: no access, no answer, no such object. */
  failed: 1,
  /** The command has looked, and found something: a problem, or a move. */
  findings: 2,
  /** What the command waited for did not come in time. */
  timedOut: 4,
  /** The command line is wrong (sysexits.h EX_USAGE). */
  usage: 64,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
