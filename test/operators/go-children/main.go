// Command go-children is an ordinary operator on controller-runtime with leader election: it creates eight kinds of children for each
// Foo, and records an Event for each step. It knows nothing of a mesh. It prints its steps and errors as JSON lines on stdout.
package main

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/zap/zapcore"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	leaseDuration = 4 * time.Second
	renewDeadline = 3 * time.Second
	retryPeriod   = 500 * time.Millisecond
	// More than client-go's default of 20, with which forty Foos would take half a minute.
	requestsPerSecond = 200
)

func main() {
	log := zap.New(zap.Level(zapcore.InfoLevel))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	if err := run(); err != nil {
		log.Error(err, "ended")
		os.Exit(1)
	}
}

func run() error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	config.QPS, config.Burst = requestsPerSecond, requestsPerSecond
	duration, deadline, retry := leaseDuration, renewDeadline, retryPeriod
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: clientgoscheme.Scheme,
		// Foos are unstructured objects, which are read from the API server by default.
		Client:                  client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		LeaderElection:          true,
		LeaderElectionID:        os.Getenv("LOCK_NAME"),
		LeaderElectionNamespace: os.Getenv("POD_NAMESPACE"),
		// Safe because nothing runs after Start has returned.
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &duration,
		RenewDeadline:                 &deadline,
		RetryPeriod:                   &retry,
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := addToManager(mgr, os.Getenv("POD_NAME")); err != nil {
		return fmt.Errorf("adding the controller: %w", err)
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
