package main

import (
	"testing"
	"time"

	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// The compiler does not check flags. Without this test a flag that a Kubernetes upgrade drops would only fail at the next start.
func TestTheComponentsKnowTheirFlags(t *testing.T) {
	opts, err := parseOptions([]string{"--dir", t.TempDir(), "--audit", "--controller-manager", "--node-controllers", "--scheduler",
		"--feature-gates", "ShardedListAndWatch=true", "--token-cache=1s", "--apiserver-arg=--max-requests-inflight=7",
		"--controller-manager-arg=--node-monitor-grace-period=10s"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := openState(opts)
	if err != nil {
		t.Fatal(err)
	}
	plane, err := configure(opts, s)
	if err != nil {
		t.Fatal(err)
	}
	if !utilfeature.DefaultFeatureGate.Enabled(features.ShardedListAndWatch) {
		t.Error("the feature gate is not set")
	}
	if got := plane.apiServer.GenericServerRunOptions.MaxRequestsInFlight; got != 7 {
		t.Errorf("--apiserver-arg: got %d requests in flight, want 7", got)
	}
	if got := plane.controllerManager.NodeLifecycleController.NodeMonitorGracePeriod.Duration; got != 10*time.Second {
		t.Errorf("--controller-manager-arg: got a grace period of %v, want 10s", got)
	}
	if got := plane.apiServer.Authentication.TokenSuccessCacheTTL; got != time.Second {
		t.Errorf("--token-cache: got %v, want 1s", got)
	}
}

func TestAllProblemsOfTheCommandLineAreReported(t *testing.T) {
	_, err := parseOptions([]string{"--port", "70000", "surplus"})
	if err == nil {
		t.Fatal("accepted")
	}
	const want = "unexpected argument \"surplus\"\n--dir is required\n--port: 70000 is not a port"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}
