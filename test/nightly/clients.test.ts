// Operators on other client libraries, also old ones and ones in other languages, two of each behind the proxies of two subsets.
import { clientCatalog } from "../support/clients/catalog.ts";
import { clientSuite } from "../support/clients/client-suite.ts";
import { describeWithKube, pythonOrSkip } from "../support/requirements.ts";

const programs = clientCatalog(await pythonOrSkip("the Python clients through two subsets"));

describeWithKube("programs on other client libraries in two subsets", () => clientSuite(programs));
