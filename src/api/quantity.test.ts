import { describe, expect, it } from "vitest";
import { parseQuantity } from "./quantity.ts";

describe("a quantity", () => {
  it.each([
    ["1", 1],
    ["50m", 0.05],
    ["1.5", 1.5],
    [".5", 0.5],
    ["1.", 1],
    ["2e3", 2000],
    ["128Mi", 134_217_728],
    ["1G", 1e9],
    ["1k", 1000],
  ])("%s is read as Kubernetes reads it", (text, value) => {
    expect(parseQuantity(text)).toBeCloseTo(value, 9);
  });
  it.each(["", "x", "1 Gi", "-1", "1K", "1mi", "1e", "0x10", ".", "1Gi2"])("%j is not a quantity", (text) => {
    expect(parseQuantity(text)).toBeUndefined();
  });
});
