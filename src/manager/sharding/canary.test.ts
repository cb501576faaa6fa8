import { describe, expect, it } from "vitest";
import { NAME_SETS } from "../../../test/support/name-sets.ts";
import { canaryTest } from "./canary.ts";

const TEN_THOUSAND = Array.from({ length: 10_000 }, (_, index) => `tenant-${index}`);
const chosen = (percent: number, names: readonly string[]) => names.filter(canaryTest({ replicas: 1, percent }, undefined));

describe("the canary's namespaces", () => {
  it("are none without a canary", () => {
    expect(["default", "foo-01"].filter(canaryTest(undefined, undefined))).toEqual([]);
  });

  it("are the union of both lists: what is in one of them belongs to somebody", () => {
    const isCanary = canaryTest({ replicas: 1, inNamespaces: ["ns-a", "default"], inShardHash: ["18", "5"] }, undefined);
    expect(["ns-a", "default", "foo-01", "kube-system"].filter(isCanary)).toEqual(["ns-a", "default", "foo-01"]);
  });

  it("are those of a percentage beside the lists", () => {
    const alone = chosen(5, TEN_THOUSAND);
    const both = TEN_THOUSAND.filter(canaryTest({ replicas: 1, percent: 5, inNamespaces: ["tenant-0", "tenant-1"] }, undefined));
    expect(new Set(both)).toEqual(new Set([...alone, "tenant-0", "tenant-1"]));
  });

  it("grow with the percentage, and are exactly as before when it goes back", () => {
    const [few, many] = [chosen(5, TEN_THOUSAND), chosen(25, TEN_THOUSAND)];
    expect(few.filter((name) => !many.includes(name))).toEqual([]);
    expect(many.length).toBeGreaterThan(few.length);
    expect(chosen(5, TEN_THOUSAND)).toEqual(few);
  });

  it.each([1, 5, 25, 50, 99])("are %i per cent of 10,000 namespaces, within a fifth", (percent) => {
    const share = chosen(percent, TEN_THOUSAND).length / 100;
    expect(share).toBeGreaterThan(percent * 0.8);
    expect(share).toBeLessThan(percent * 1.2);
  });

  it.each(NAME_SETS)("are about a tenth of %s for ten per cent", (_, names) => {
    expect(Math.abs(chosen(10, names).length - 100)).toBeLessThan(30);
  });
});
