import { describe, expect, it } from "vitest";
import { sampleVirtualApp } from "../../test/support/virtual-app.ts";
import { oldSpellings } from "./old-spellings.ts";
import { validateVirtualApp } from "./virtual-app.ts";

const onLoss = (value: string) => sampleVirtualApp({ route: { onLoss: value }, subsets: [] });

describe("oldSpellings", () => {
  it("names the new spelling of each old one", () => {
    const configuration = { controller: { leaderElection: { lockName: "shop-lock" } } };
    expect(oldSpellings(sampleVirtualApp({ configuration, route: { onLoss: "Resync" } }))).toEqual([
      'spec.route.onLoss: "Resync" is the old name of "InPlace"',
      "spec.configuration.controller.leaderElection.lockName is the old name of spec.configuration.controller.leaderElectionName",
    ]);
  });

  it("is empty for new spellings, and for values that are not objects", () => {
    expect(oldSpellings(onLoss("InPlace"))).toEqual([]);
    expect(oldSpellings(null)).toEqual([]);
  });

  it("leaves the object valid: onLoss Resync is read as InPlace", () => {
    expect(validateVirtualApp(onLoss("Resync"))).toMatchObject({ ok: true, value: { spec: { route: { onLoss: "InPlace" } } } });
    expect(validateVirtualApp(onLoss("InPlace"))).toMatchObject({ ok: true, value: { spec: { route: { onLoss: "InPlace" } } } });
  });
});
