// Field numbers of the built-in kinds' protobuf encoding, for the messages that clients send to localkube. A line is a message; a
// field is "number name type", with [] for repeated, {} for a map from strings, ? for a Go pointer (kept if zero) and ^ for a
// message that is inlined in JSON. protobuf.ts refuses fields that are not here.

export const MESSAGES: Readonly<Record<string, string>> = {
  Namespace: "1 metadata ObjectMeta, 2 spec NamespaceSpec, 3 status NamespaceStatus",
  Pod: "1 metadata ObjectMeta, 2 spec PodSpec, 3 status PodStatus",
  ConfigMap: "1 metadata ObjectMeta, 4 immutable? bool, 2 data string{}, 3 binaryData bytes{}",
  Secret: "1 metadata ObjectMeta, 5 immutable? bool, 2 data bytes{}, 4 stringData string{}, 3 type string",
  Service: "1 metadata ObjectMeta, 2 spec ServiceSpec, 3 status ServiceStatus",
  Endpoints: "1 metadata ObjectMeta, 2 subsets EndpointSubset[]",
  Event:
    "1 metadata ObjectMeta, 2 involvedObject ObjectReference, 3 reason string, 4 message string, 5 source EventSource, 6 firstTimestamp Time, 7 lastTimestamp Time, 8 count int, 9 type string, 10 eventTime MicroTime, 11 series? EventSeries, 12 action string, 13 related? ObjectReference, 14 reportingComponent string, 15 reportingInstance string",
  Node: "1 metadata ObjectMeta, 2 spec NodeSpec, 3 status NodeStatus",
  ServiceAccount:
    "1 metadata ObjectMeta, 2 secrets ObjectReference[], 3 imagePullSecrets LocalObjectReference[], 4 automountServiceAccountToken? bool",
  Lease: "1 metadata ObjectMeta, 2 spec LeaseSpec",
  TokenReview: "1 metadata ObjectMeta, 2 spec TokenReviewSpec, 3 status TokenReviewStatus",
  SubjectAccessReview: "1 metadata ObjectMeta, 2 spec SubjectAccessReviewSpec, 3 status SubjectAccessReviewStatus",
  SelfSubjectAccessReview: "1 metadata ObjectMeta, 2 spec SelfSubjectAccessReviewSpec, 3 status SubjectAccessReviewStatus",
  SelfSubjectReview: "1 metadata ObjectMeta, 2 status SelfSubjectReviewStatus",
  TokenRequest: "1 metadata ObjectMeta, 2 spec TokenRequestSpec, 3 status TokenRequestStatus",
  DeleteOptions:
    "1 gracePeriodSeconds? int, 2 preconditions? Preconditions, 3 orphanDependents? bool, 4 propagationPolicy? string, 5 dryRun string[], 6 ignoreStoreReadErrorWithClusterBreakingPotential? bool",
  Eviction: "1 metadata ObjectMeta, 2 deleteOptions? DeleteOptions",
  ObjectMeta:
    "1 name string, 2 generateName string, 3 namespace string, 4 selfLink string, 5 uid string, 6 resourceVersion string, 7 generation int, 8 creationTimestamp Time, 9 deletionTimestamp? Time, 10 deletionGracePeriodSeconds? int, 11 labels string{}, 12 annotations string{}, 13 ownerReferences OwnerReference[], 14 finalizers string[], 17 managedFields ManagedFieldsEntry[]",
  NamespaceSpec: "1 finalizers string[]",
  NamespaceStatus: "1 phase string, 2 conditions NamespaceCondition[]",
  PodSpec:
    "1 volumes Volume[], 20 initContainers Container[], 2 containers Container[], 34 ephemeralContainers EphemeralContainer[], 3 restartPolicy string, 4 terminationGracePeriodSeconds? int, 5 activeDeadlineSeconds? int, 6 dnsPolicy string, 7 nodeSelector string{}, 8 serviceAccountName string, 9 serviceAccount string, 21 automountServiceAccountToken? bool, 10 nodeName string, 11 hostNetwork bool, 12 hostPID bool, 13 hostIPC bool, 27 shareProcessNamespace? bool, 14 securityContext? PodSecurityContext, 15 imagePullSecrets LocalObjectReference[], 16 hostname string, 17 subdomain string, 18 affinity? Affinity, 19 schedulerName string, 22 tolerations Toleration[], 23 hostAliases HostAlias[], 24 priorityClassName string, 25 priority? int, 26 dnsConfig? PodDNSConfig, 28 readinessGates PodReadinessGate[], 29 runtimeClassName? string, 30 enableServiceLinks? bool, 31 preemptionPolicy? string, 32 overhead Quantity{}, 33 topologySpreadConstraints TopologySpreadConstraint[], 35 setHostnameAsFQDN? bool, 36 os? PodOS, 37 hostUsers? bool, 38 schedulingGates PodSchedulingGate[], 40 resources? ResourceRequirements, 41 hostnameOverride? string",
  PodStatus:
    "17 observedGeneration int, 1 phase string, 2 conditions PodCondition[], 3 message string, 4 reason string, 11 nominatedNodeName string, 5 hostIP string, 16 hostIPs HostIP[], 6 podIP string, 12 podIPs PodIP[], 7 startTime? Time, 10 initContainerStatuses ContainerStatus[], 8 containerStatuses ContainerStatus[], 9 qosClass string, 13 ephemeralContainerStatuses ContainerStatus[], 14 resize string, 19 allocatedResources Quantity{}",
  ServiceSpec:
    "1 ports ServicePort[], 2 selector string{}, 3 clusterIP string, 18 clusterIPs string[], 4 type string, 5 externalIPs string[], 7 sessionAffinity string, 8 loadBalancerIP string, 9 loadBalancerSourceRanges string[], 10 externalName string, 11 externalTrafficPolicy string, 12 healthCheckNodePort int, 13 publishNotReadyAddresses bool, 14 sessionAffinityConfig? SessionAffinityConfig, 19 ipFamilies string[], 17 ipFamilyPolicy? string, 20 allocateLoadBalancerNodePorts? bool, 21 loadBalancerClass? string, 22 internalTrafficPolicy? string, 23 trafficDistribution? string",
  ServiceStatus: "1 loadBalancer LoadBalancerStatus, 2 conditions Condition[]",
  EndpointSubset: "1 addresses EndpointAddress[], 2 notReadyAddresses EndpointAddress[], 3 ports EndpointPort[]",
  ObjectReference:
    "1 kind string, 2 namespace string, 3 name string, 4 uid string, 5 apiVersion string, 6 resourceVersion string, 7 fieldPath string",
  EventSource: "1 component string, 2 host string",
  EventSeries: "1 count int, 2 lastObservedTime MicroTime",
  NodeSpec:
    "1 podCIDR string, 7 podCIDRs string[], 3 providerID string, 4 unschedulable bool, 5 taints Taint[], 2 externalID string",
  NodeStatus:
    "1 capacity Quantity{}, 2 allocatable Quantity{}, 3 phase string, 4 conditions NodeCondition[], 5 addresses NodeAddress[], 6 daemonEndpoints NodeDaemonEndpoints, 7 nodeInfo NodeSystemInfo, 8 images ContainerImage[], 9 volumesInUse string[], 14 declaredFeatures string[]",
  LocalObjectReference: "1 name string",
  LeaseSpec:
    "1 holderIdentity? string, 2 leaseDurationSeconds? int, 3 acquireTime? MicroTime, 4 renewTime? MicroTime, 5 leaseTransitions? int, 6 strategy? string, 7 preferredHolder? string",
  TokenReviewSpec: "1 token string, 2 audiences string[]",
  TokenReviewStatus: "1 authenticated bool, 2 user UserInfo, 4 audiences string[], 3 error string",
  SubjectAccessReviewSpec:
    "1 resourceAttributes? ResourceAttributes, 2 nonResourceAttributes? NonResourceAttributes, 3 user string, 4 groups string[], 5 extra ExtraValue{}, 6 uid string",
  SubjectAccessReviewStatus: "1 allowed bool, 4 denied bool, 2 reason string, 3 evaluationError string",
  SelfSubjectAccessReviewSpec: "1 resourceAttributes? ResourceAttributes, 2 nonResourceAttributes? NonResourceAttributes",
  SelfSubjectReviewStatus: "1 userInfo UserInfo",
  TokenRequestSpec: "1 audiences string[], 4 expirationSeconds? int, 3 boundObjectRef? BoundObjectReference",
  TokenRequestStatus: "1 token string, 2 expirationTimestamp Time",
  Preconditions: "1 uid? string, 2 resourceVersion? string",
  OwnerReference:
    "5 apiVersion string, 1 kind string, 3 name string, 4 uid string, 6 controller? bool, 7 blockOwnerDeletion? bool",
  ManagedFieldsEntry:
    "1 manager string, 2 operation string, 3 apiVersion string, 4 time? Time, 6 fieldsType string, 7 fieldsV1? FieldsV1, 8 subresource string",
  NamespaceCondition: "1 type string, 2 status string, 4 lastTransitionTime Time, 5 reason string, 6 message string",
  Volume: "1 name string, 2 volumeSource^ VolumeSource",
  Container:
    "1 name string, 2 image string, 3 command string[], 4 args string[], 5 workingDir string, 6 ports ContainerPort[], 19 envFrom EnvFromSource[], 7 env EnvVar[], 8 resources ResourceRequirements, 24 restartPolicy? string, 9 volumeMounts VolumeMount[], 21 volumeDevices VolumeDevice[], 10 livenessProbe? Probe, 11 readinessProbe? Probe, 22 startupProbe? Probe, 12 lifecycle? Lifecycle, 13 terminationMessagePath string, 20 terminationMessagePolicy string, 14 imagePullPolicy string, 15 securityContext? SecurityContext, 16 stdin bool, 17 stdinOnce bool, 18 tty bool",
  EphemeralContainer: "1 ephemeralContainerCommon EphemeralContainerCommon, 2 targetContainerName string",
  PodSecurityContext:
    "1 seLinuxOptions? SELinuxOptions, 2 runAsUser? int, 6 runAsGroup? int, 3 runAsNonRoot? bool, 4 supplementalGroups int[], 12 supplementalGroupsPolicy? string, 5 fsGroup? int, 7 sysctls Sysctl[], 9 fsGroupChangePolicy? string, 10 seccompProfile? SeccompProfile, 11 appArmorProfile? AppArmorProfile, 13 seLinuxChangePolicy? string",
  Affinity: "1 nodeAffinity? NodeAffinity, 2 podAffinity? PodAffinity, 3 podAntiAffinity? PodAntiAffinity",
  Toleration: "1 key string, 2 operator string, 3 value string, 4 effect string, 5 tolerationSeconds? int",
  HostAlias: "1 ip string, 2 hostnames string[]",
  PodDNSConfig: "1 nameservers string[], 2 searches string[], 3 options PodDNSConfigOption[]",
  PodReadinessGate: "1 conditionType string",
  TopologySpreadConstraint:
    "1 maxSkew int, 2 topologyKey string, 3 whenUnsatisfiable string, 4 labelSelector? LabelSelector, 5 minDomains? int, 6 nodeAffinityPolicy? string, 7 nodeTaintsPolicy? string, 8 matchLabelKeys string[]",
  PodOS: "1 name string",
  PodSchedulingGate: "1 name string",
  ResourceRequirements: "1 limits Quantity{}, 2 requests Quantity{}, 3 claims ResourceClaim[]",
  PodCondition:
    "1 type string, 7 observedGeneration int, 2 status string, 3 lastProbeTime Time, 4 lastTransitionTime Time, 5 reason string, 6 message string",
  HostIP: "1 ip string",
  PodIP: "1 ip string",
  ContainerStatus:
    "1 name string, 2 state ContainerState, 3 lastState ContainerState, 4 ready bool, 5 restartCount int, 6 image string, 7 imageID string, 8 containerID string, 9 started? bool, 10 allocatedResources Quantity{}, 11 resources? ResourceRequirements, 15 stopSignal? string",
  ServicePort: "1 name string, 2 protocol string, 6 appProtocol? string, 3 port int, 4 targetPort IntOrString, 5 nodePort int",
  SessionAffinityConfig: "1 clientIP? ClientIPConfig",
  LoadBalancerStatus: "1 ingress LoadBalancerIngress[]",
  Condition:
    "1 type string, 2 status string, 3 observedGeneration int, 4 lastTransitionTime Time, 5 reason string, 6 message string",
  EndpointAddress: "1 ip string, 3 hostname string, 4 nodeName? string, 2 targetRef? ObjectReference",
  EndpointPort: "1 name string, 2 port int, 3 protocol string, 4 appProtocol? string",
  Taint: "1 key string, 2 value string, 3 effect string, 4 timeAdded? Time",
  NodeCondition:
    "1 type string, 2 status string, 3 lastHeartbeatTime Time, 4 lastTransitionTime Time, 5 reason string, 6 message string",
  NodeAddress: "1 type string, 2 address string",
  NodeDaemonEndpoints: "1 kubeletEndpoint DaemonEndpoint",
  NodeSystemInfo:
    "1 machineID string, 2 systemUUID string, 3 bootID string, 4 kernelVersion string, 5 osImage string, 6 containerRuntimeVersion string, 7 kubeletVersion string, 8 kubeProxyVersion string, 9 operatingSystem string, 10 architecture string, 11 swap? NodeSwapStatus",
  ContainerImage: "1 names string[], 2 sizeBytes int",
  UserInfo: "1 username string, 2 uid string, 3 groups string[], 4 extra ExtraValue{}",
  ResourceAttributes:
    "1 namespace string, 2 verb string, 3 group string, 4 version string, 5 resource string, 6 subresource string, 7 name string",
  NonResourceAttributes: "1 path string, 2 verb string",
  ExtraValue: "1 items string[]",
  BoundObjectReference: "1 kind string, 2 apiVersion string, 3 name string, 4 uID string",
  VolumeSource:
    "1 hostPath? HostPathVolumeSource, 2 emptyDir? EmptyDirVolumeSource, 6 secret? SecretVolumeSource, 10 persistentVolumeClaim? PersistentVolumeClaimVolumeSource, 16 downwardAPI? DownwardAPIVolumeSource, 19 configMap? ConfigMapVolumeSource, 26 projected? ProjectedVolumeSource",
  ContainerPort: "1 name string, 2 hostPort int, 3 containerPort int, 4 protocol string, 5 hostIP string",
  EnvFromSource: "1 prefix string, 2 configMapRef? ConfigMapEnvSource, 3 secretRef? SecretEnvSource",
  EnvVar: "1 name string, 2 value string, 3 valueFrom? EnvVarSource",
  VolumeMount:
    "1 name string, 2 readOnly bool, 7 recursiveReadOnly? string, 3 mountPath string, 4 subPath string, 5 mountPropagation? string, 6 subPathExpr string",
  VolumeDevice: "1 name string, 2 devicePath string",
  Probe:
    "1 handler^ ProbeHandler, 2 initialDelaySeconds int, 3 timeoutSeconds int, 4 periodSeconds int, 5 successThreshold int, 6 failureThreshold int, 7 terminationGracePeriodSeconds? int",
  Lifecycle: "1 postStart? LifecycleHandler, 2 preStop? LifecycleHandler, 3 stopSignal? string",
  SecurityContext:
    "1 capabilities? Capabilities, 2 privileged? bool, 3 seLinuxOptions? SELinuxOptions, 4 runAsUser? int, 8 runAsGroup? int, 5 runAsNonRoot? bool, 6 readOnlyRootFilesystem? bool, 7 allowPrivilegeEscalation? bool, 9 procMount? string, 11 seccompProfile? SeccompProfile, 12 appArmorProfile? AppArmorProfile",
  EphemeralContainerCommon:
    "1 name string, 2 image string, 3 command string[], 4 args string[], 5 workingDir string, 6 ports ContainerPort[], 19 envFrom EnvFromSource[], 7 env EnvVar[], 8 resources ResourceRequirements, 24 restartPolicy? string, 9 volumeMounts VolumeMount[], 21 volumeDevices VolumeDevice[], 10 livenessProbe? Probe, 11 readinessProbe? Probe, 22 startupProbe? Probe, 12 lifecycle? Lifecycle, 13 terminationMessagePath string, 20 terminationMessagePolicy string, 14 imagePullPolicy string, 15 securityContext? SecurityContext, 16 stdin bool, 17 stdinOnce bool, 18 tty bool",
  SELinuxOptions: "1 user string, 2 role string, 3 type string, 4 level string",
  Sysctl: "1 name string, 2 value string",
  SeccompProfile: "1 type string, 2 localhostProfile? string",
  AppArmorProfile: "1 type string, 2 localhostProfile? string",
  NodeAffinity:
    "1 requiredDuringSchedulingIgnoredDuringExecution? NodeSelector, 2 preferredDuringSchedulingIgnoredDuringExecution PreferredSchedulingTerm[]",
  PodAffinity:
    "1 requiredDuringSchedulingIgnoredDuringExecution PodAffinityTerm[], 2 preferredDuringSchedulingIgnoredDuringExecution WeightedPodAffinityTerm[]",
  PodAntiAffinity:
    "1 requiredDuringSchedulingIgnoredDuringExecution PodAffinityTerm[], 2 preferredDuringSchedulingIgnoredDuringExecution WeightedPodAffinityTerm[]",
  PodDNSConfigOption: "1 name string, 2 value? string",
  LabelSelector: "1 matchLabels string{}, 2 matchExpressions LabelSelectorRequirement[]",
  ResourceClaim: "1 name string, 2 request string",
  ContainerState: "1 waiting? ContainerStateWaiting, 2 running? ContainerStateRunning, 3 terminated? ContainerStateTerminated",
  ClientIPConfig: "1 timeoutSeconds? int",
  LoadBalancerIngress: "1 ip string, 2 hostname string, 3 ipMode? string, 4 ports PortStatus[]",
  DaemonEndpoint: "1 Port int",
  NodeSwapStatus: "1 capacity? int",
  HostPathVolumeSource: "1 path string, 2 type? string",
  EmptyDirVolumeSource: "1 medium string, 2 sizeLimit? Quantity",
  SecretVolumeSource: "1 secretName string, 2 items KeyToPath[], 3 defaultMode? int, 4 optional? bool",
  PersistentVolumeClaimVolumeSource: "1 claimName string, 2 readOnly bool",
  DownwardAPIVolumeSource: "1 items DownwardAPIVolumeFile[], 2 defaultMode? int",
  ConfigMapVolumeSource:
    "1 localObjectReference^ LocalObjectReference, 2 items KeyToPath[], 3 defaultMode? int, 4 optional? bool",
  ProjectedVolumeSource: "1 sources VolumeProjection[], 2 defaultMode? int",
  ConfigMapEnvSource: "1 localObjectReference^ LocalObjectReference, 2 optional? bool",
  SecretEnvSource: "1 localObjectReference^ LocalObjectReference, 2 optional? bool",
  EnvVarSource:
    "1 fieldRef? ObjectFieldSelector, 2 resourceFieldRef? ResourceFieldSelector, 3 configMapKeyRef? ConfigMapKeySelector, 4 secretKeyRef? SecretKeySelector",
  ProbeHandler: "1 exec? ExecAction, 2 httpGet? HTTPGetAction, 3 tcpSocket? TCPSocketAction, 4 grpc? GRPCAction",
  LifecycleHandler: "1 exec? ExecAction, 2 httpGet? HTTPGetAction, 3 tcpSocket? TCPSocketAction, 4 sleep? SleepAction",
  Capabilities: "1 add string[], 2 drop string[]",
  NodeSelector: "1 nodeSelectorTerms NodeSelectorTerm[]",
  PreferredSchedulingTerm: "1 weight int, 2 preference NodeSelectorTerm",
  PodAffinityTerm:
    "1 labelSelector? LabelSelector, 2 namespaces string[], 3 topologyKey string, 4 namespaceSelector? LabelSelector, 5 matchLabelKeys string[], 6 mismatchLabelKeys string[]",
  WeightedPodAffinityTerm: "1 weight int, 2 podAffinityTerm PodAffinityTerm",
  LabelSelectorRequirement: "1 key string, 2 operator string, 3 values string[]",
  ContainerStateWaiting: "1 reason string, 2 message string",
  ContainerStateRunning: "1 startedAt Time",
  ContainerStateTerminated:
    "1 exitCode int, 2 signal int, 3 reason string, 4 message string, 5 startedAt Time, 6 finishedAt Time, 7 containerID string",
  PortStatus: "1 port int, 2 protocol string, 3 error? string",
  KeyToPath: "1 key string, 2 path string, 3 mode? int",
  DownwardAPIVolumeFile: "1 path string, 2 fieldRef? ObjectFieldSelector, 3 resourceFieldRef? ResourceFieldSelector, 4 mode? int",
  VolumeProjection:
    "1 secret? SecretProjection, 2 downwardAPI? DownwardAPIProjection, 3 configMap? ConfigMapProjection, 4 serviceAccountToken? ServiceAccountTokenProjection",
  ObjectFieldSelector: "1 apiVersion string, 2 fieldPath string",
  ResourceFieldSelector: "1 containerName string, 2 resource string, 3 divisor Quantity",
  ConfigMapKeySelector: "1 localObjectReference^ LocalObjectReference, 2 key string, 3 optional? bool",
  SecretKeySelector: "1 localObjectReference^ LocalObjectReference, 2 key string, 3 optional? bool",
  ExecAction: "1 command string[]",
  HTTPGetAction: "1 path string, 2 port IntOrString, 3 host string, 4 scheme string, 5 httpHeaders HTTPHeader[]",
  TCPSocketAction: "1 port IntOrString, 2 host string",
  GRPCAction: "1 port int, 2 service? string",
  SleepAction: "1 seconds int",
  NodeSelectorTerm: "1 matchExpressions NodeSelectorRequirement[], 2 matchFields NodeSelectorRequirement[]",
  SecretProjection: "1 localObjectReference^ LocalObjectReference, 2 items KeyToPath[], 4 optional? bool",
  DownwardAPIProjection: "1 items DownwardAPIVolumeFile[]",
  ConfigMapProjection: "1 localObjectReference^ LocalObjectReference, 2 items KeyToPath[], 4 optional? bool",
  ServiceAccountTokenProjection: "1 audience string, 2 expirationSeconds? int, 3 path string",
  HTTPHeader: "1 name string, 2 value string",
  NodeSelectorRequirement: "1 key string, 2 operator string, 3 values string[]",
};
