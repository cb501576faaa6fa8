package main

import (
	"fmt"
	"slices"
	"strings"
)

const (
	serviceRange = "10.96.0.0/16"
	// serviceIP is the first address of serviceRange. The API server gives it to the service kubernetes.
	serviceIP = "10.96.0.1"
	issuer    = "https://kubernetes.default.svc"
)

func apiServerArgs(opts *options, s *state) []string {
	args := []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", s.ports.Etcd),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", s.ports.API),
		// Endpoints may not be loopback addresses, so the service kubernetes has none.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceRange,
		"--tls-cert-file=" + s.pki.path("apiserver.crt"),
		"--tls-private-key-file=" + s.pki.path("apiserver.key"),
		"--client-ca-file=" + s.pki.path("ca.crt"),
		"--token-auth-file=" + s.path("tokens.csv"),
		"--authorization-mode=Node,RBAC",
		"--service-account-issuer=" + issuer,
		"--api-audiences=" + issuer,
		"--service-account-key-file=" + s.pki.path("service-account.key"),
		"--service-account-signing-key-file=" + s.pki.path("service-account.key"),
		"--allow-privileged=true",
		"--profiling=false",
	}
	if !opts.controllerManager {
		// No controller creates the ServiceAccounts that this plugin requires of every pod.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if s.auditLog != "" {
		args = append(args,
			"--audit-policy-file="+s.path("audit-policy.yaml"),
			"--audit-log-path="+s.auditLog,
			"--audit-log-format=json",
			// Blocking mode loses nothing. Without rotation a test that reads one file sees every line.
			"--audit-log-mode=blocking",
			"--audit-log-maxsize=100000",
		)
	}
	if opts.featureGates != "" {
		// The gates belong to the process: all components have those of the API server.
		args = append(args, "--feature-gates="+opts.featureGates)
	}
	return append(args, opts.apiServerArgs...)
}

// nodeControllers mark silent nodes as unreachable and delete their pods. Most tests have no kubelet: nodes never send a heartbeat, and
// pods may name nodes that do not exist.
var nodeControllers = []string{"node-lifecycle-controller", "taint-eviction-controller", "pod-garbage-collector-controller"}

// disabledControllers have nothing to do in any test. They serve devices, volumes, clouds and certificates.
var disabledControllers = []string{
	"device-taint-eviction-controller",
	"node-ipam-controller", "node-route-controller", "service-lb-controller", "cloud-node-lifecycle-controller",
	"persistentvolume-binder-controller", "persistentvolume-attach-detach-controller", "persistentvolume-expander-controller",
	"persistentvolume-protection-controller", "persistentvolumeclaim-protection-controller", "volumeattributesclass-protection-controller",
	"ephemeral-volume-controller", "resourceclaim-controller", "selinux-warning-controller",
	"certificatesigningrequest-signing-controller", "certificatesigningrequest-approving-controller", "certificatesigningrequest-cleaner-controller",
	"bootstrap-signer-controller", "token-cleaner-controller", "ttl-controller",
}

func controllerManagerArgs(opts *options, s *state) []string {
	disabled := disabledControllers
	if !opts.nodeControllers {
		disabled = slices.Concat(nodeControllers, disabled)
	}
	return append([]string{
		"--kubeconfig=" + s.kubeconfig(controllerManagerUser),
		"--controllers=*,-" + strings.Join(disabled, ",-"),
		// There is one of each in the API server's process, so an election could only be lost by a slow machine.
		"--leader-elect=false",
		"--secure-port=0",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + s.pki.path("service-account.key"),
		"--root-ca-file=" + s.pki.path("ca.crt"),
		// With the defaults, 20 and 30, a test with many objects waits for the client's own limit.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}, opts.controllerManagerArgs...)
}

func schedulerArgs(s *state) []string {
	return []string{
		"--kubeconfig=" + s.kubeconfig(schedulerUser),
		"--leader-elect=false",
		"--secure-port=0",
	}
}
