// An operator on java-operator-sdk (Java), two pods behind the proxies of two subsets.
import { JAVA_OPERATOR_SDK } from "../support/clients/catalog.ts";
import { clientSuite } from "../support/clients/client-suite.ts";
import { whyNoJava } from "../support/java-build.ts";
import { describeWithKubeAndBuild } from "../support/requirements.ts";

const missing = await whyNoJava("test/operators/java-operator-sdk");

describeWithKubeAndBuild(missing, "java-operator-sdk in two subsets", () => clientSuite([JAVA_OPERATOR_SDK]));
