// Kubernetes quantities ("50m", "128Mi", "1.5", "2e3") as numbers, exact enough to compare CPU and memory.
// Pure.
const SUFFIXES: Readonly<Record<string, number>> = {
  "": 1,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

const QUANTITY = /^(\d+(?:\.\d*)?|\.\d+)(?:([mkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,2}))?$/;

/** A number of cores or bytes; undefined for any other text, and for a negative quantity. */
export function parseQuantity(text: string): number | undefined {
  const match = QUANTITY.exec(text);
  if (match === null) return undefined;
  const [, digits = "", suffix = "", exponent = "0"] = match;
  return Number(digits) * (SUFFIXES[suffix] ?? 1) * 10 ** Number(exponent);
}
