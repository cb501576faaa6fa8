// Probes and lifecycle hooks: an action against one container, and the loop that derives "passed" and "failed" from its results
// and thresholds. Like the kubelet's, they come from the node.
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";
import type { ContainerProcess } from "./container-process.ts";
import type { Action, Container, HttpGet, Probe } from "./pod-types.ts";

/** The container under the action. */
export interface ActionTarget {
  readonly container: Container;
  readonly podIP: string;
  readonly process: ContainerProcess;
}

/** Runs the action once and resolves if it succeeds. @throws Error with the reason of the failure */
export async function act(action: Action, { container, podIP, process }: ActionTarget, timeoutMs: number): Promise<undefined> {
  const { exec, httpGet, tcpSocket, grpc, sleep } = action;
  if (exec !== undefined) {
    const { code, output } = await process.exec(exec.command, timeoutMs);
    if (code !== 0) throw new Error(`command exited with ${code}: ${output.trim()}`);
  } else if (httpGet !== undefined) {
    await getOverHttp(httpGet, httpGet.host ?? podIP, portOf(container, httpGet.port), timeoutMs);
  } else if (tcpSocket !== undefined) {
    await connectTo(tcpSocket.host ?? podIP, portOf(container, tcpSocket.port), timeoutMs);
  } else if (grpc !== undefined) {
    throw new Error("grpc probes are not supported by the test node");
  } else if (sleep !== undefined) {
    await new Promise((resolve) => setTimeout(resolve, sleep.seconds * 1000));
  }
  return undefined;
}

export interface ProbeHandlers {
  /** Called for every failure. */
  onFailure(message: string): void;
  /** Called when a threshold is reached, and for each further result of the same kind. */
  onThreshold(isSuccess: boolean): void;
}

/** Probes until the signal. */
export async function probeLoop(
  probe: Probe,
  target: ActionTarget,
  signal: AbortSignal,
  { onFailure, onThreshold }: ProbeHandlers,
): Promise<void> {
  const { initialDelaySeconds = 0, periodSeconds = 10, timeoutSeconds = 1, successThreshold = 1, failureThreshold = 3 } = probe;
  let successes = 0;
  let failures = 0;
  await pause(initialDelaySeconds * 1000, signal);
  while (!signal.aborted) {
    const error = await act(probe, target, timeoutSeconds * 1000).catch((cause: Error) => cause);
    if (signal.aborted) return;
    const isSuccess = error === undefined;
    successes = isSuccess ? successes + 1 : 0;
    failures = isSuccess ? 0 : failures + 1;
    if (!isSuccess) onFailure(error.message);
    if (isSuccess ? successes >= successThreshold : failures >= failureThreshold) onThreshold(isSuccess);
    await pause(periodSeconds * 1000, signal);
  }
}

/** Resolves after `ms`, or at once when the signal fires. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (ms <= 0 || signal.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}

function portOf({ name, ports = [] }: Container, port: number | string): number {
  const found = typeof port === "number" ? port : ports.find((each) => each.name === port)?.containerPort;
  if (found === undefined) throw new Error(`container ${name} has no port ${port}`);
  return found;
}

function getOverHttp({ path = "/", scheme = "HTTP", httpHeaders = [] }: HttpGet, host: string, port: number, timeoutMs: number) {
  const request = scheme === "HTTPS" ? httpsRequest : httpRequest;
  const headers = { "user-agent": "kube-probe/1.36", ...Object.fromEntries(httpHeaders.map(({ name, value }) => [name, value])) };
  return new Promise<void>((resolve, reject) => {
    const options = {
      host,
      port,
      path,
      headers,
      agent: false,
      rejectUnauthorized: false,
      signal: AbortSignal.timeout(timeoutMs),
    };
    const call = request(options, (response) => {
      const { statusCode = 0 } = response;
      response.resume();
      response.on("error", () => {});
      if (statusCode >= 200 && statusCode < 400) resolve();
      else reject(new Error(`HTTP probe failed with statuscode: ${statusCode}`));
    });
    call.on("error", reject);
    call.end();
  });
}

function connectTo(host: string, port: number, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, timeout: timeoutMs });
    socket.once("connect", () => {
      socket.destroy();
      resolve();
    });
    socket.once("timeout", () => socket.destroy(new Error("i/o timeout")));
    socket.once("error", reject);
  });
}
