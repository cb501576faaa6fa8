package main

import (
	"runtime"
	"runtime/debug"
	// For go:linkname.
	_ "unsafe"

	etcdversion "go.etcd.io/etcd/api/v3/version"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
)

// Versions is the output of `kube version`.
type Versions struct {
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
	Go         string `json:"go"`
}

// readVersions takes the version of Kubernetes from the module list of the binary, so that go.mod is its only source.
func readVersions() Versions {
	v := Versions{Kubernetes: "unknown", Etcd: "v" + etcdversion.Version, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "k8s.io/kubernetes" {
				v.Kubernetes = module.Version
			}
		}
	}
	return v
}

// Kubernetes' own build sets this variable by -ldflags. A plain `go build` leaves a placeholder in it, and /version would
// say v0.0.0, by which clients choose what they dare to use.
//
//go:linkname kubeGitVersion k8s.io/component-base/version.gitVersion
var kubeGitVersion string

func applyVersion() {
	kubeGitVersion = readVersions().Kubernetes
	if err := version.SetDynamicVersion(kubeGitVersion); err != nil {
		klog.ErrorS(err, "Setting the version", "version", kubeGitVersion)
	}
}
