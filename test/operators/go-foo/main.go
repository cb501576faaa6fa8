// Command go-foo is an ordinary operator on controller-runtime: a CRD, a reconciler, leader election. It knows nothing of a mesh,
// so every operator would behave as it does in the mesh's tests.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	demov1 "ctrlmesh.io/test/operators/go-foo/api/v1"
	"ctrlmesh.io/test/operators/go-foo/controller"
)

type options struct {
	podName       string
	userAgent     string
	metrics       string
	health        string
	election      election
	leaseDuration time.Duration
	retryPeriod   time.Duration
	beside        bool
	work          controller.Work
}

func main() {
	opts := options{podName: os.Getenv("POD_NAME")}
	flag.StringVar(&opts.election.id, "leader-election-id", "foo-operator", "name of the lease")
	flag.StringVar(&opts.election.namespace, "leader-election-namespace", os.Getenv("POD_NAMESPACE"), "namespace of the lease; by default $POD_NAMESPACE, or else that of the pod's service account")
	flag.DurationVar(&opts.leaseDuration, "lease-duration", 15*time.Second, "how long others wait for a leader that is silent")
	flag.DurationVar(&opts.election.renewDeadline, "renew-deadline", 10*time.Second, "how long the leader tries to renew before it gives up")
	flag.DurationVar(&opts.retryPeriod, "retry-period", 2*time.Second, "how often the lease is tried or renewed")
	flag.StringVar(&opts.metrics, "metrics-bind-address", "0", "address of the metrics; 0 is none")
	flag.StringVar(&opts.health, "health-probe-bind-address", "0", "address of /healthz and /readyz; 0 is none")
	flag.StringVar(&opts.userAgent, "user-agent", "", "User-Agent of all requests; client-go's own by default")
	flag.BoolVar(&opts.beside, "beside", false, "write <foo>-beside instead of <foo>-data and the status, beside another operator")
	flag.IntVar(&opts.work.Workers, "workers", 0, "reconciles at a time; 0 is controller-runtime's default, 1")
	flag.DurationVar(&opts.work.CPU, "reconcile-cpu", 0, "processor time that each reconcile wastes, for measurements")
	flag.DurationVar(&opts.work.Wait, "reconcile-wait", 0, "time that each reconcile waits, for measurements")
	flag.Parse()

	// JSON lines on stderr, also from client-go: at level 4 its reflectors log each list and watch and why it stops.
	verbosity, _ := strconv.ParseInt(os.Getenv("LOG_VERBOSITY"), 10, 8)
	log := zap.New(zap.Level(zapcore.Level(-verbosity)))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	if err := run(opts); err != nil {
		log.Error(err, "ended")
		os.Exit(1)
	}
}

func run(opts options) error {
	if opts.podName == "" {
		hostname, err := os.Hostname()
		if err != nil {
			return err
		}
		opts.podName = hostname
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	config.UserAgent = opts.userAgent
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := demov1.AddToScheme(scheme); err != nil {
		return err
	}
	lock, err := opts.election.lock(config, scheme, opts.podName)
	if err != nil {
		return fmt.Errorf("making the leader election lock: %w", err)
	}
	traffic := newTraffic()
	if opts.metrics != "0" {
		traffic.countIn(config) // the lock has its own client, which does not count
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                              scheme,
		Metrics:                             metricsserver.Options{BindAddress: opts.metrics},
		HealthProbeBindAddress:              opts.health,
		LeaderElection:                      true,
		LeaderElectionResourceLockInterface: lock,
		// Safe because nothing runs after Start has returned.
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &opts.leaseDuration,
		RenewDeadline:                 &opts.election.renewDeadline,
		RetryPeriod:                   &opts.retryPeriod,
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := controller.AddToManager(mgr, opts.podName, opts.beside, opts.work, traffic.events); err != nil {
		return fmt.Errorf("adding the controller: %w", err)
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
