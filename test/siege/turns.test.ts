import { expect, test } from "vitest";
import { seededRandom } from "../support/random.ts";
import { ATTACKS } from "./attacks.ts";
import { turnsOf } from "./turns.ts";

const namesOf = (turn: { readonly attacks: readonly { readonly name: string }[] }) => turn.attacks.map(({ name }) => name).sort();

test("both sidecars of a pair of windows meet the same attacks", () => {
  const next = turnsOf(ATTACKS, seededRandom(1));
  for (let pair = 0; pair < 6; pair++) {
    const [measured, decoy] = [next(), next()];
    expect([measured.at, decoy.at]).toEqual(["measured", "decoy"]);
    expect(namesOf(decoy)).toEqual(namesOf(measured));
    expect(measured.attacks.length === ATTACKS.length).toBe(pair % 2 === 0);
  }
});

test("two pairs with a half of the attacks, one after the other, hold all of them", () => {
  for (let seed = 0; seed < 50; seed++) {
    const next = turnsOf(ATTACKS, seededRandom(seed));
    const turns = Array.from({ length: 8 }, () => next());
    const seen = turns.filter(({ attacks }) => attacks.length < ATTACKS.length).flatMap(namesOf);
    expect(new Set(seen)).toEqual(new Set(namesOf({ attacks: ATTACKS })));
  }
});

test("the names of the attacks are unique", () => {
  expect(new Set(ATTACKS.map(({ name }) => name)).size).toBe(ATTACKS.length);
});
