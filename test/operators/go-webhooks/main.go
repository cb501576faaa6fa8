// Command go-webhooks is an ordinary operator on controller-runtime with webhooks: it defaults, validates and converts Gadgets, a kind of
// two versions. It knows nothing of a mesh.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	demov1 "ctrlmesh.io/test/operators/go-webhooks/api/v1"
	demov1beta1 "ctrlmesh.io/test/operators/go-webhooks/api/v1beta1"
	"ctrlmesh.io/test/operators/go-webhooks/webhooks"
)

type options struct {
	podName       string
	namespace     string
	health        string
	webhook       webhook.Options
	lock          string
	leaseDuration time.Duration
	renewDeadline time.Duration
	retryPeriod   time.Duration
}

func main() {
	opts := options{podName: os.Getenv("POD_NAME"), namespace: os.Getenv("POD_NAMESPACE")}
	flag.StringVar(&opts.health, "health-probe-bind-address", "0", "address of /healthz and /readyz; 0 is none")
	flag.StringVar(&opts.webhook.Host, "webhook-host", "", "address of the webhooks; by default all")
	flag.IntVar(&opts.webhook.Port, "webhook-port", 9443, "port of the webhooks")
	flag.StringVar(&opts.webhook.CertDir, "webhook-cert-dir", "/certs", "folder with tls.crt and tls.key, which may change")
	flag.StringVar(&opts.lock, "leader-election-id", "gadget-operator", "name of the lease")
	flag.DurationVar(&opts.leaseDuration, "lease-duration", 15*time.Second, "how long others wait for a leader that is silent")
	flag.DurationVar(&opts.renewDeadline, "renew-deadline", 10*time.Second, "how long the leader tries to renew before it gives up")
	flag.DurationVar(&opts.retryPeriod, "retry-period", 2*time.Second, "how often the lease is tried or renewed")
	flag.Parse()

	log := zap.New()
	ctrl.SetLogger(log)
	if err := run(opts); err != nil {
		log.Error(err, "ended")
		os.Exit(1)
	}
}

func run(opts options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, demov1.AddToScheme, demov1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:  opts.health,
		WebhookServer:           webhook.NewServer(opts.webhook),
		LeaderElection:          true,
		LeaderElectionID:        opts.lock,
		LeaderElectionNamespace: opts.namespace,
		// Safe because nothing runs after Start has returned.
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &opts.leaseDuration,
		RenewDeadline:                 &opts.renewDeadline,
		RetryPeriod:                   &opts.retryPeriod,
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return err
	}
	if err := webhooks.AddToManager(mgr, opts.podName, os.Stdout); err != nil {
		return fmt.Errorf("adding the webhooks: %w", err)
	}
	reconciler := &reconciler{client: mgr.GetClient(), podName: opts.podName}
	if err := ctrl.NewControllerManagedBy(mgr).Named("gadget").For(&demov1.Gadget{}).Complete(reconciler); err != nil {
		return fmt.Errorf("adding the controller: %w", err)
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
