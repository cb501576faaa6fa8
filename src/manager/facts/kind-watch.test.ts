import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { silentLogger } from "../../base/log.ts";
import { SERVICES } from "../../kube/client/resources.ts";
import { createInformers } from "../../runtime/informers.ts";
import { createKindWatch } from "./kind-watch.ts";

it("watches a kind in a namespace as long as an app of it asks, and no others", async () => {
  const [clock, client, log] = [createFakeClock(), createFakeKubeClient(), silentLogger()];
  const informers = createInformers({ client, clock, random: () => 0, log });
  await informers.start(new AbortController().signal);
  for (const namespace of ["shop", "elsewhere"]) client.put(SERVICES, { metadata: { namespace, name: "s" } });
  const told: string[] = [];
  const watch = createKindWatch({ resource: SERVICES, informers, log, onChange: ({ name }) => told.push(name) });
  const [one, two] = [
    { namespace: "shop", name: "one" },
    { namespace: "shop", name: "two" },
  ];
  expect([watch.list(one), watch.list(two)]).toEqual([undefined, undefined]);
  await clock.flush();
  expect(new Set(told)).toEqual(new Set(["one", "two"]));
  expect(watch.list(one)?.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)).toEqual(["shop/s"]);
  expect(client.calls.map(({ verb }) => verb)).toEqual(["list", "watch"]);
  watch.forget(one);
  told.length = 0;
  client.put(SERVICES, { metadata: { namespace: "shop", name: "t" } });
  await clock.flush();
  expect(told).toEqual(["two"]);
  watch.forget(two);
  watch.forget(two);
  await clock.flush();
  expect(watch.list(two)).toBeUndefined(); // listed anew
  await informers.stop();
});
