// The messages between the test process and the node's agent over Node's IPC channel. Calls and answers match by id. A call to
// `listen` carries the listening socket, which stays in the network namespace of the test process.
import type { TestImages } from "./test-image.ts";

export interface NodeSettings {
  readonly server: string;
  readonly caPem: string;
  readonly token: string;
  readonly nodeNames: readonly string[];
  readonly serviceRange: string;
  readonly apiService: { readonly host: string; readonly port: number };
  readonly images: TestImages;
  readonly hidden: readonly string[];
  readonly logDir: string;
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
}

export interface ContainerInfo {
  readonly name: string;
  /** The pid of the container's first process on this machine; 0 if none runs. */
  readonly pid: number;
  readonly restartCount: number;
  readonly logFile: string;
}

export interface ExecAnswer {
  readonly code: number;
  readonly output: string;
}

/** The parameters and results of each call. */
export interface AgentCalls {
  /** Becomes the node. */
  readonly run: { readonly takes: NodeSettings; readonly gives: null };
  /** Forwards connections of the socket that comes along. */
  readonly listen: { readonly takes: { readonly host: string; readonly port: number }; readonly gives: null };
  readonly images: { readonly takes: TestImages; readonly gives: null };
  readonly containers: { readonly takes: { readonly namespace: string; readonly pod: string }; readonly gives: PodInfo };
  readonly exec: {
    readonly takes: {
      readonly namespace: string;
      readonly pod: string;
      readonly container: string;
      readonly argv: readonly string[];
    };
    readonly gives: ExecAnswer;
  };
  readonly stop: { readonly takes: null; readonly gives: null };
}

export interface PodInfo {
  readonly podIP: string;
  readonly containers: readonly ContainerInfo[];
}

export type CallName = keyof AgentCalls;

export interface CallMessage<N extends CallName = CallName> {
  readonly id: number;
  readonly call: N;
  readonly takes: AgentCalls[N]["takes"];
}

export interface AnswerMessage {
  readonly id: number;
  readonly gives?: unknown;
  readonly error?: string;
}
