// The requests of one app, asked of its sidecars again and again while this view is open.
import { useEffect, useState } from "preact/hooks";
import { counted } from "../../frame/output.ts";
import type { Traffic } from "../model/parts.ts";
import { ChooseApp, titleOf, useChosenApp } from "./choose-app.tsx";
import type { ViewProps } from "./view-props.ts";

interface Heard {
  readonly traffic?: Traffic;
  readonly problem?: string;
}

export function TrafficView({ apps, place, choose }: ViewProps) {
  const app = useChosenApp(apps, place.app);
  const title = app === undefined ? "" : titleOf(app);
  const heard = useTraffic(title);
  if (app === undefined) return <p class="empty">There is no app here.</p>;
  return (
    <>
      <div class="choices">
        <ChooseApp apps={apps} value={title} choose={choose} />
        <p class="sum">Asks the sidecars of up to 10 pods while this view is open.</p>
      </div>
      {heard.problem !== undefined && <p class="empty">✕ {heard.problem}</p>}
      {heard.traffic === undefined ? (
        heard.problem === undefined && <p class="empty">Listening …</p>
      ) : (
        <Requests traffic={heard.traffic} />
      )}
    </>
  );
}

function useTraffic(app: string): Heard {
  const [heard, setHeard] = useState<Heard>({});
  useEffect(() => {
    if (app === "") return;
    const leaving = new AbortController();
    setHeard({});
    void listen(app, leaving.signal, setHeard);
    return () => leaving.abort();
  }, [app]);
  return heard;
}

/** Nobody looks at a hidden tab, and each question starts programs and asks sidecars. */
function untilVisible(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", () => resolve(), { once: true, signal });
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** The program answers after a few seconds, so this asks as often as it answers; after a problem it waits. */
async function listen(app: string, signal: AbortSignal, show: (heard: Heard) => void): Promise<void> {
  while (!signal.aborted) {
    await untilVisible(signal);
    if (signal.aborted) return;
    try {
      const reply = await fetch(`traffic?app=${encodeURIComponent(app)}`, { signal });
      const content: Traffic & { readonly problem?: string } = await reply.json();
      if (reply.ok) show({ traffic: content });
      else show({ problem: content.problem ?? `the program answers ${reply.status}` });
      if (reply.ok) continue;
    } catch {
      if (!signal.aborted) show({ problem: "the program does not answer" });
    }
    const pause = AbortSignal.any([signal, AbortSignal.timeout(AGAIN_MS)]);
    await new Promise((resolve) => pause.addEventListener("abort", resolve, { once: true }));
  }
}

const AGAIN_MS = 5_000;

function Requests({ traffic: { seconds, rows, refused, pods, problems } }: { readonly traffic: Traffic }) {
  const total = rows.reduce((sum, { count }) => sum + count, 0);
  return (
    <>
      <p>
        {counted(total, "request")} of {counted(pods, "pod")} in {seconds} s, {rows.reduce((sum, row) => sum + row.refused, 0)}{" "}
        refused
      </p>
      <ul class="notices">
        {problems.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
      <table class="stacked">
        <thead>
          <tr>
            <th scope="col">Request</th>
            <th scope="col">Count</th>
            <th scope="col">Refused</th>
            <th scope="col">Median</th>
            <th scope="col">Pods</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ request, count, refused: not, medianMs, pods: of }) => (
            <tr key={request} class={not > 0 ? "stuck" : ""}>
              <td data-label="Request">
                <code>{request}</code>
              </td>
              <td data-label="Count">{count}</td>
              <td data-label="Refused">{not > 0 ? `✕ ${not}` : "0"}</td>
              <td data-label="Median">{medianMs} ms</td>
              <td data-label="Pods">{of}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {refused.length > 0 && (
        <section aria-label="Refused">
          <h3>Refused</h3>
          <ul class="plain">
            {refused.map(({ pod, request, count, why }) => (
              <li key={`${pod} ${request} ${why}`}>
                <code>{request}</code> of pod {pod}, {counted(count, "time")}: {why}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}
