import { describe, expect, it } from "vitest";
import { dnsLabelSchema, dnsSubdomainSchema, labelKeySchema, labelValueSchema, subsetNameSchema } from "./names.ts";

const fits = (schema: { safeParse(value: unknown): { success: boolean } }, value: string) => schema.safeParse(value).success;

describe("names", () => {
  it("accepts DNS labels as Kubernetes does", () => {
    for (const good of ["a", "a-b", "0", "a--b", "a".repeat(63)]) expect(fits(dnsLabelSchema, good), good).toBe(true);
    for (const bad of ["", "-a", "a-", "A", "a.b", "a_b", "a\n", "a".repeat(64)])
      expect(fits(dnsLabelSchema, bad), bad).toBe(false);
  });

  it("accepts two hyphens in a row in a subset name, and refuses three", () => {
    expect(fits(subsetNameSchema, "a--b")).toBe(true);
    expect(subsetNameSchema.safeParse("a---b").error?.issues[0]?.message).toContain('must not contain "---"');
    expect(subsetNameSchema.safeParse("").error?.issues[0]?.message).toContain("must be a DNS label");
  });

  it("accepts DNS subdomains as Kubernetes does", () => {
    for (const good of ["a", "a.b", "shop-lock.example.com", "a".repeat(253)])
      expect(fits(dnsSubdomainSchema, good), good).toBe(true);
    for (const bad of ["", ".a", "a.", "a..b", "a.-b", "A.b", "a".repeat(254)])
      expect(fits(dnsSubdomainSchema, bad), bad).toBe(false);
  });

  it("accepts label values as Kubernetes does", () => {
    for (const good of ["", "a", "A_b.c-d", "1", "a".repeat(63)]) expect(fits(labelValueSchema, good), good).toBe(true);
    for (const bad of ["-a", "a-", "a b", "a/b", "a".repeat(64)]) expect(fits(labelValueSchema, bad), bad).toBe(false);
  });

  it("accepts label keys with and without a prefix", () => {
    const long = "a".repeat(63);
    for (const good of ["a", "A_b", "app.kubernetes.io/name", `x.y/${long}`, `${"p".repeat(253)}/${long}`]) {
      expect(fits(labelKeySchema, good), good).toBe(true);
    }
    for (const bad of ["", "/a", "a/", "a/b/c", "A/b", "_a", "a b", `${long}a`, `x/${long}a`, `${"p".repeat(254)}/a`]) {
      expect(fits(labelKeySchema, bad), bad).toBe(false);
    }
  });

  it("refuses hostile input of a megabyte without delay", () => {
    for (const schema of [dnsLabelSchema, dnsSubdomainSchema, labelKeySchema, labelValueSchema, subsetNameSchema]) {
      expect(fits(schema, `${"a-".repeat(500_000)}!`)).toBe(false);
    }
  }, 2_000);
});
