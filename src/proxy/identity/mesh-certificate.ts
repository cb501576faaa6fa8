// The certificate that the manager issues to this pod. It is renewed after a quarter of its life, and
// immediately when the mesh has other CAs. Invariants: every certificate is checked before its use; while a
// renewal fails the old one stays in use, even after its end, since open connections never look at it again.
import { createPrivateKey, type KeyObject, type X509Certificate } from "node:crypto";
import { z } from "zod";
import { untilAborted } from "../../base/abort.ts";
import { CLOCK_SKEW_MS } from "../../base/certificates.ts";
import { type BackoffOptions, backoffMs, type Random, sleep } from "../../base/clock.ts";
import { errorMessage } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { Counter } from "../../base/metrics.ts";
import { readCertificates } from "../../base/pem.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { Slot } from "../state/state-folder.ts";
import { createCertificateTrouble } from "./certificate-trouble.ts";
import { type Certify, newKey } from "./certify.ts";
import { checkCertificate } from "./check-certificate.ts";
import type { MeshTrust, MeshTrustStore } from "./manager-access.ts";
import { isRefusal, reasonOf } from "./manager-channel.ts";
import type { CertificateHolder, ServingCertificate } from "./serving-certificate.ts";

export interface MeshCertificateOptions extends ProcessContext {
  readonly manager: string;
  readonly caFile: string;
  readonly trust: MeshTrustStore;
  readonly certify: Certify;
  readonly slot: Slot;
  /** The URI of this pod, if peers have to know it; stored certificates of old versions lack it. */
  readonly clientName?: string | undefined;
  readonly holder: CertificateHolder;
}

const STORED = z.object({ key: z.string(), chain: z.string(), trust: z.string() });

/**
 * PEM: the key, the chain with the certificate first, and the manager's CAs when it issued them. In a pod the
 * key is on no disk, since the folder is an emptyDir in memory.
 */
type StoredCertificate = Readonly<z.output<typeof STORED>>;

interface CheckedLeaf {
  readonly leaf: X509Certificate;
  /** The manager's CAs when it issued the certificate. */
  readonly trustSet: string;
  readonly renewAt: number;
}

export function createMeshCertificate(options: MeshCertificateOptions): ServingCertificate {
  const { caFile, certify, clientName, clock, holder, log, manager, random, registry, slot, trust } = options;
  const trouble = createCertificateTrouble(manager, clock, log);
  const requests = new Counter({
    name: "ctrlmesh_proxy_certificate_requests_total",
    help: "Requests to the manager for a serving certificate: issued, refused (who we are is not believed), or failed.",
    labelNames: ["result"],
    registers: [registry],
  });
  const stopping = new AbortController();
  const first = Promise.withResolvers<void>();
  let inUse: CheckedLeaf | undefined;
  /** The CAs in the file when the certificate was issued. The kubelet may bring the manager's CAs late. */
  let fileSet = "";
  let renewing: Promise<void> = Promise.resolve();

  const check = ({ chain, trust: trustPem }: StoredCertificate, by: MeshTrust, privateKey: KeyObject): CheckedLeaf => {
    const issuers = readCertificates(trustPem, "the manager's trust");
    const leaf = checkCertificate(chain, { privateKey, clientName, trusts: [by.certificates, issuers], now: clock.now() });
    return { leaf, trustSet: fingerprintsOf(issuers), renewAt: renewalTime(leaf, random) };
  };
  const use = (checked: CheckedLeaf, { chain, key }: StoredCertificate) => {
    inUse = checked;
    holder.use({ cert: chain, key });
    trouble.update(checked.leaf, undefined);
    first.resolve();
  };
  const restore = async () => {
    const stored = await loadCertificate(slot, log);
    if (stored === undefined) return;
    try {
      const checked = check(stored, await trust.current(), createPrivateKey(stored.key));
      use(checked, stored);
      log.info({ ends: checked.leaf.validTo }, "serving with the stored certificate");
    } catch (error) {
      log.warn(
        { path: slot.path, reason: reasonOf(error, manager) },
        "the stored certificate is not usable; asking for a new one",
      );
    }
  };
  const renew = async () => {
    const by = await trust.current();
    const key = await newKey();
    const { chainPem, trustPem } = await certify(key.publicKey, stopping.signal);
    const issued: StoredCertificate = { key: key.pem, chain: chainPem, trust: trustPem };
    const checked = check(issued, by, key.privateKey);
    // A process that has begun to serve must be able to continue after a restart.
    await slot.save(() => ({ text: () => JSON.stringify(issued), onFullDisk: "keep" }));
    use(checked, issued);
    fileSet = fingerprintsOf(by.certificates);
    const { serialNumber, validTo } = checked.leaf;
    log.info({ manager, serial: serialNumber, ends: validTo }, "the manager has issued a serving certificate");
  };
  const hasOtherTrust = async ({ trustSet }: CheckedLeaf): Promise<boolean> => {
    const now = fingerprintsOf((await trust.current()).certificates);
    return now !== trustSet && now !== fileSet;
  };
  const isDue = async (): Promise<boolean> =>
    inUse === undefined || clock.now() >= inUse.renewAt || (await hasOtherTrust(inUse).catch(() => false));

  const run = async () => {
    let failures = 0;
    let retryAtMs = 0;
    while (!stopping.signal.aborted) {
      if (clock.monotonicMs() >= retryAtMs) {
        try {
          if (await isDue()) {
            await renew();
            requests.inc({ result: "issued" });
          }
          failures = 0;
        } catch (error) {
          if (stopping.signal.aborted) return;
          requests.inc({ result: isRefusal(error) ? "refused" : "failed" });
          trouble.update(inUse?.leaf, reasonOf(error, manager));
          retryAtMs = clock.monotonicMs() + backoffMs(failures++, retryBackoff(inUse !== undefined, isRefusal(error)), random);
        }
      }
      trouble.update(inUse?.leaf, trouble.reason);
      // A time that has just passed means now: the timer may have fired a little before it.
      const untilNextMs = failures > 0 ? retryAtMs - clock.monotonicMs() : (inUse?.renewAt ?? 0) - clock.now();
      await sleep(clock, Math.max(0, Math.min(CHECK_MS, untilNextMs)), stopping.signal).catch(() => undefined);
    }
  };

  return {
    name: "serving-certificate",
    caFile,
    current: holder.current,
    onChange: holder.onChange,
    get notReady() {
      return trouble.notReady;
    },
    get warning() {
      return trouble.warning;
    },
    async start(signal) {
      await restore();
      renewing = run();
      renewing.catch((error: unknown) => log.error({ reason: reasonOf(error, manager) }, "renewing the certificate has ended"));
      await Promise.race([first.promise, untilAborted(signal)]);
    },
    async stop() {
      stopping.abort();
      await renewing.catch(() => undefined);
    },
  };
}

async function loadCertificate(slot: Slot, log: Logger): Promise<StoredCertificate | undefined> {
  try {
    const text = await slot.read();
    return text === undefined ? undefined : STORED.parse(JSON.parse(text));
  } catch (error) {
    // A parser's message may quote what it was given.
    const reason = error instanceof SyntaxError || error instanceof z.ZodError ? "it is not whole" : errorMessage(error);
    log.warn({ path: slot.path, reason }, "the stored certificate is not usable; asking for a new one");
    return undefined;
  }
}

/** Equal for equal sets, in whatever order. */
function fingerprintsOf(certificates: readonly X509Certificate[]): string {
  return [...new Set(certificates.map(({ fingerprint256 }) => fingerprint256))].sort().join();
}

/** Between two checks of the certificate and of the CAs' file. */
export const CHECK_MS = 10_000;

/** Short: pods start together with their manager. */
const FIRST: BackoffOptions = { baseMs: 200, maxMs: 5_000 };
const FIRST_REFUSED: BackoffOptions = { baseMs: 1_000, maxMs: 60_000 };
const RENEWAL: BackoffOptions = { baseMs: 5_000, maxMs: 300_000 };

function retryBackoff(hasOne: boolean, isRefused: boolean): BackoffOptions {
  if (hasOne) return RENEWAL;
  return isRefused ? FIRST_REFUSED : FIRST;
}

/**
 * Wall time in milliseconds, shortly before a quarter of the life is over: operators go on for three quarters
 * of it without a manager. Random, so that pods that started together do not ask together. The life begins at
 * the issue. The certificate itself is dated back, for clocks that are late.
 */
function renewalTime({ validFromDate, validToDate }: X509Certificate, random: Random): number {
  const from = validFromDate.getTime() + CLOCK_SKEW_MS;
  return from + (validToDate.getTime() - from) * (0.25 - 0.05 * random());
}
