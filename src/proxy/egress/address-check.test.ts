import { describe, expect, it } from "vitest";
import { type Cidr, createAddressCheck, parseCidr } from "./address-check.ts";

const cidrs = (...texts: string[]): Cidr[] => texts.flatMap((text) => parseCidr(text) ?? []);
const check = createAddressCheck([]);
const PRIVATE = ["127.0.0.1", "127.255.0.1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "::1"];
const PRIVATE_6 = ["fd12::1", "::ffff:10.0.0.1", "::ffff:7f00:1", "64:ff9b::a00:1", "2002:a00:1::1", "fec0::1"];
const PRIVATE_IN_6 = ["::10.0.0.1", "::ffff:0:10.0.0.1", "64:ff9b:1::a00:1"];
const NEVER = ["169.254.169.254", "169.254.0.1", "100.100.100.200", "0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255"];
const NEVER_CLOUD = ["168.63.129.16", "fd20:ce::254", "192.0.0.192", "64:ff9b::192.0.0.192"];
const SPECIAL = ["192.0.0.1", "192.0.0.255", "198.18.0.1", "198.19.255.255", "192.88.99.1"];
const NEVER_6 = ["fd00:ec2::254", "fe80::1", "fe80::1%eth0", "febf::1", "::", "ff02::1", "::ffff:169.254.169.254"];
const EMBEDDED = ["::ffff:a9fe:a9fe", "64:ff9b::169.254.169.254", "64:ff9b::", "::ffff:0:0"];

describe("createAddressCheck", () => {
  it.each(["1.1.1.1", "100.63.0.1", "172.32.0.1", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1"])(
    "lets %s through",
    (address) => expect(check(address)).toBeUndefined(),
  );

  it.each([...PRIVATE, ...PRIVATE_6, ...PRIVATE_IN_6, ...NEVER, ...NEVER_CLOUD, ...NEVER_6, ...EMBEDDED, "a.example", ""])(
    "refuses %s",
    (address) => {
      expect(check(address)).toMatch(/^is /);
    },
  );

  it.each(SPECIAL)("refuses %s, which is special, unless its range is listed (D21)", (address) => {
    expect(check(address)).toMatch(/^is private/);
    expect(createAddressCheck(cidrs("192.0.0.0/24", "198.18.0.0/15", "192.88.99.0/24"))(address)).toBeUndefined();
  });

  it.each(["192.0.1.1", "198.17.255.255", "198.20.0.1", "192.88.98.1"])("lets the neighbour %s through", (address) => {
    expect(check(address)).toBeUndefined();
  });

  it("lets listed private addresses through, in each of their forms, and no others", () => {
    const some = createAddressCheck(cidrs("10.1.0.0/16", "fd12::/16"));
    expect(["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "fd12::1"].map(some)).toEqual(Array(4).fill(undefined));
    expect(["10.2.0.1", "::ffff:10.2.0.1", "fd13::1"].map(some)).not.toContain(undefined);
  });

  it.each([...NEVER, ...NEVER_CLOUD, ...NEVER_6, ...EMBEDDED])("refuses %s also if everything is listed", (address) => {
    expect(createAddressCheck(cidrs("0.0.0.0/0", "::/0"))(address)).toMatch(/^is /);
  });
});

it.each(["10.0.0.0", "10.0.0.0/33", "10.0.0/8", "a/8", "::1/129", "fe80::%1/10", "/8", ""])("%j is no range", (text) => {
  expect(parseCidr(text)).toBeUndefined();
});
