// Command go-multicluster is an operator on multicluster-runtime with its kubeconfig provider: it leads by a Lease at home, takes the
// other clusters from the Secrets with its label, and writes to each ConfigMap with the label in each of them again and again. Its
// User-Agent there has the name of its pod. It knows nothing of a mesh.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/providers/kubeconfig"
)

func main() {
	secretLabel := flag.String("secret-label", kubeconfig.DefaultKubeconfigSecretLabel, "the label of the Secrets with kubeconfigs")
	ctrl.SetLogger(klog.Background())
	flag.Parse()
	if err := run(ctrl.SetupSignalHandler(), *secretLabel); err != nil {
		klog.ErrorS(err, "The manager has ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, secretLabel string) error {
	home, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the home cluster: %w", err)
	}
	namespace := os.Getenv("POD_NAMESPACE")
	provider := kubeconfig.New(kubeconfig.Options{
		Namespace:             namespace,
		KubeconfigSecretLabel: secretLabel,
		RESTOptions: []func(*rest.Config) error{func(config *rest.Config) error {
			config.UserAgent = "writer/" + os.Getenv("POD_NAME")
			return nil
		}},
	})
	lease, renew, retry := 4*time.Second, 3*time.Second, 500*time.Millisecond
	options := mcmanager.Options{
		LeaderElection:          true,
		LeaderElectionID:        os.Getenv("LOCK_NAME"),
		LeaderElectionNamespace: namespace,
		LeaseDuration:           &lease,
		RenewDeadline:           &renew,
		RetryPeriod:             &retry,
		Metrics:                 server.Options{BindAddress: "0"},
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	}
	manager, err := mcmanager.New(home, provider, options)
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := provider.SetupWithManager(ctx, manager); err != nil {
		return fmt.Errorf("setting up the provider: %w", err)
	}
	if err := setUpReconciler(manager); err != nil {
		return fmt.Errorf("setting up the controller: %w", err)
	}
	return manager.Start(ctx)
}
