// Sets of values for the tests of the chart. Each set turns on features that the other sets do not.

/** Kinds of other projects, of which the chart can create objects. */
export const OPTIONAL_KINDS = [
  { group: "monitoring.coreos.com", version: "v1", kind: "ServiceMonitor", plural: "servicemonitors" },
  { group: "monitoring.coreos.com", version: "v1", kind: "PodMonitor", plural: "podmonitors" },
  { group: "monitoring.coreos.com", version: "v1", kind: "PrometheusRule", plural: "prometheusrules" },
  { group: "cert-manager.io", version: "v1", kind: "Certificate", plural: "certificates" },
] as const;

export const VALUES: Readonly<Record<string, string>> = {
  "the default": "",
  "everything on": `
networkPolicy: { enabled: true, metricsFrom: [{ namespaceSelector: { matchLabels: { name: monitoring } } }], webhookFrom: [{ ipBlock: { cidr: 192.0.2.0/28 } }] }
monitoring:
  serviceMonitor: { enabled: true, interval: 1m, labels: { release: prometheus }, relabelings: [{ action: drop, regex: a }], metricRelabelings: [{ action: drop, regex: b }] }
  podMonitor: { enabled: true, interval: 1m, labels: { release: prometheus }, relabelings: [{ action: drop, regex: a }], metricRelabelings: [{ action: drop, regex: b }] }
  prometheusRule: { enabled: true, labels: { release: prometheus }, runbookBaseUrl: "https://docs.example.com/troubleshooting.md" }
  dashboard: { enabled: true, labels: { grafana: "1" }, annotations: { grafana_folder: Operators } }
identity:
  certificateLifetime: 12h
  certManager:
    enabled: true
    issuerRef: { group: cert-manager.io, kind: Issuer, name: ca }
    secretName: ca
    duration: 8760h
    renewBefore: 720h
rbac: { scaleOf: [{ group: apps.kruise.io, resource: clonesets }], labelObjects: [{ group: "", resource: configmaps, families: [foo-system/foo-operator] }, { group: demo.ctrlmesh.io, resource: foos, families: ["*"] }] }
`,
  "a private registry and another namespace": `
enabled: true # as from a parent chart
global: { imageRegistry: "registry.example.com:5000/team" }
replicaCount: 3
image: { digest: "sha256:${"0123456789abcdef".repeat(4)}", pullPolicy: Always }
imagePullSecrets: [{ name: pull }]
proxy:
  image: { tag: v1, pullPolicy: Always }
  imagePullSecrets: [{ name: pull }, { name: more }]
  resources: { requests: { cpu: 100m, memory: 256Mi }, limits: { cpu: 1, memory: 1Gi } }
  logLevel: debug
  accessLog: sample=0.01
  intercept: kubeconfig
  nativeSidecar: "true"
leaseDuration: 10s
restartSettle: 1m
webhook: { hostNetwork: true, port: 19443, timeoutSeconds: 20, warnOfMoves: true, clientCA: api-server-clients }
logLevel: debug
resources: { requests: { cpu: 1 }, limits: { cpu: 2 }, claims: [] }
terminationGracePeriodSeconds: 60
extraArgs: [--labels-per-second=100]
extraVolumes: [{ name: tmp, emptyDir: {} }]
extraVolumeMounts: [{ name: tmp, mountPath: /tmp }]
podSecurityContext: { fsGroup: 2000 }
securityContext: { runAsUser: 2000 }
dnsConfig: { options: [{ name: ndots, value: "1" }] }
deploymentAnnotations: { a: b }
serviceAnnotations: { c: d }
commonAnnotations: { e: f }
priorityClassName: system-cluster-critical
priorityClassQuota: true
nodeSelector: { kubernetes.io/os: linux }
tolerations: [{ key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule }]
affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: infra, operator: Exists }] }] } } }
topologySpreadConstraints: [{ maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: { matchLabels: { app.kubernetes.io/name: ctrlmesh } } }]
podDisruptionBudget: { maxUnavailable: 50% }
podAnnotations: { team: platform }
podLabels: { team: platform }
commonLabels: { cost: infra }
serviceAccount: { name: mesh, annotations: { example.com/role: mesh } }
extraEnv: [{ name: HTTPS_PROXY, value: "" }]
listenHost: 0.0.0.0
`,
  "names that YAML reads as numbers": `
image: { registry: "11", repository: "22", tag: "3" }
proxy: { image: { registry: "11", repository: "22", digest: "sha256:${"0123456789".repeat(6)}0123" } }
imagePullSecrets: [{ name: "123" }, { name: "true" }]
priorityClassName: "123"
clusterDomain: "1e3"
identity: { caSecret: "456" }
`,
  "as little as possible": `
replicaCount: 1
serviceAccount: { create: false, name: given }
rbac: { aggregate: false, admissionPolicies: false }
crds: { install: false, keep: false }
podDisruptionBudget: { enabled: false }
resources: {}
monitoring: { serviceMonitor: { enabled: true } }
`,
};

/** Values that the chart must refuse, and the text that each error must have. */
export const REFUSED: readonly { readonly values: string; readonly names: string }[] = [
  { values: "identity: { certificateLifetime: 25h }", names: "identity.certificateLifetime: must be 10s to 24h" },
  { values: 'rbac: { labelObjects: [{ group: "", resource: configmaps }] }', names: "'families'" },
  {
    values: "extraArgs: [--webhook-url=https://10.0.0.1:9443]",
    names: "rbac.admissionPolicies: set it to false with --webhook-url",
  },
  { values: "replicaCount: 0", names: "/replicaCount" },
  { values: "podDisruptionBudget: { minAvailable: 1 }", names: "'minAvailable'" },
  { values: "image: { tag: [1] }", names: "/image/tag" },
  { values: "identity: { certManager: { enabled: true } }", names: "set identity.certManager.issuerRef.name" },
  {
    values: "identity: { caSecret: mine, certManager: { enabled: true, issuerRef: { name: ca } } }",
    names: "identity.caSecret and identity.certManager.enabled: set one of them",
  },
  { values: "image: { registry: https://registry.example.com }", names: "/image/registry" },
  { values: "proxy: { accessLog: sometimes }", names: "/proxy/accessLog" },
  { values: "webhook: { port: 5447 }", names: "webhook.port: 5447 is another port of the manager" },
  { values: "leaseDuration: 15", names: "/leaseDuration" },
  { values: "monitoring: { prometheusRule: { runbookBaseUrl: docs/troubleshooting.md } }", names: "/runbookBaseUrl" },
  { values: "leaseDuration: 1m", names: "leaseDuration: must be 1s to 20s" },
  { values: "priorityClassQuota: true", names: "priorityClassQuota: set priorityClassName" },
  { values: "identity: { caSecret: ctrlmesh-ca }", names: "identity.caSecret: ctrlmesh-ca is the manager's own Secret" },
  {
    values: "identity: { certManager: { enabled: true, issuerRef: { name: ca }, secretName: ctrlmesh-ca } }",
    names: "identity.certManager.secretName: ctrlmesh-ca is the manager's own Secret",
  },
  {
    values: "identity: { certManager: { enabled: true, issuerRef: { name: ca }, duration: 1h, renewBefore: 59m60s } }",
    names: "identity.certManager.renewBefore: 59m60s must be shorter than duration, 1h",
  },
  {
    values: "podLabels: { app.kubernetes.io/name: mine }",
    names: "podLabels: app.kubernetes.io/name is set by the chart and cannot be changed",
  },
  { values: "commonLabels: { helm.sh/chart: mine }", names: "commonLabels: helm.sh/chart is set by the chart" },
  {
    values: "commonLabels: { team: a }\npodLabels: { team: a }",
    names: "podLabels: team is also in commonLabels, which the pods have too",
  },
  {
    values: "podAnnotations: { kubectl.kubernetes.io/default-container: mine }",
    names: "podAnnotations: kubectl.kubernetes.io/default-container is set by the chart",
  },
  {
    values: "extraEnv: [{ name: CTRLMESH_LOG_LEVEL, value: debug }]",
    names: "extraEnv: CTRLMESH_LOG_LEVEL is set by the chart; set the value logLevel instead",
  },
];
