// Runs test/operators/go-retry, which watches one object from its own version and ends when the object is deleted.
import { startChild } from "./child-process.ts";

export interface GoRetryOptions {
  /** The built program. */
  readonly command: string;
  /** RetryWatcher or UntilWithoutRetry. */
  readonly by: "retry" | "until";
  readonly kubeconfig: string;
  /** resource.version.group */
  readonly resource: string;
  /** The object, which the program creates. */
  readonly namespace: string;
  readonly name: string;
  /** Watches all namespaces instead of the object's. */
  readonly everywhere: boolean;
}

export interface GoRetry {
  readonly exited: boolean;
  /** The version from which it watches, once it is known. */
  from(): string | undefined;
  /** The events that it has seen, with the key namespace/name. */
  events(): readonly { readonly type: string; readonly key: string }[];
  /** The newest lines of its output, for failure messages. */
  output(): string;
  /** Resolves with the exit code. */
  stop(): Promise<number | null>;
}

export async function startGoRetry(options: GoRetryOptions): Promise<GoRetry> {
  const { command, by, kubeconfig, resource, namespace, name, everywhere } = options;
  const lines: { readonly from?: string; readonly type?: string; readonly key?: string }[] = [];
  const child = await startChild({
    name: `go-retry ${by} ${resource} ${namespace}/${name}`,
    command,
    args: [`--with=${by}`, `--resource=${resource}`, `--namespace=${namespace}`, `--name=${name}`, `--everywhere=${everywhere}`],
    env: { KUBECONFIG: kubeconfig },
    readyLine: false,
    onLine: (line) => {
      if (line.startsWith("{")) lines.push(JSON.parse(line));
    },
  });
  return {
    get exited() {
      return child.exited;
    },
    from: () => lines.find(({ from }) => from !== undefined)?.from,
    events: () => lines.flatMap(({ type, key }) => (type === undefined || key === undefined ? [] : [{ type, key }])),
    output: child.output,
    stop: () => child.stop(),
  };
}
