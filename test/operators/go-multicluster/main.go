// Command go-multicluster is an operator on multicluster-runtime: it leads by a Lease at home, takes the other clusters from the Secrets
// with its label, or with --access-file from ClusterProfiles, and writes to each ConfigMap with the label in each of them again and again. Its
// User-Agent there has the name of its pod. It knows nothing of a mesh.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	"sigs.k8s.io/multicluster-runtime/providers/kubeconfig"
)

func main() {
	secretLabel := flag.String("secret-label", kubeconfig.DefaultKubeconfigSecretLabel, "the label of the Secrets with kubeconfigs")
	accessFile := flag.String("access-file", "", "the access providers of cluster-inventory-api, to take the clusters from ClusterProfiles")
	ctrl.SetLogger(klog.Background())
	flag.Parse()
	if err := run(ctrl.SetupSignalHandler(), *secretLabel, *accessFile); err != nil {
		klog.ErrorS(err, "The manager has ended")
		os.Exit(1)
	}
}

// provider finds the other clusters.
type provider interface {
	multicluster.Provider
	SetupWithManager(context.Context, mcmanager.Manager) error
}

func newProvider(namespace, secretLabel, accessFile string) (provider, error) {
	if accessFile != "" {
		return newInventory(accessFile)
	}
	return kubeconfig.New(kubeconfig.Options{
		Namespace:             namespace,
		KubeconfigSecretLabel: secretLabel,
		RESTOptions: []func(*rest.Config) error{func(config *rest.Config) error {
			config.UserAgent = "writer/" + os.Getenv("POD_NAME")
			return nil
		}},
	}), nil
}

func run(ctx context.Context, secretLabel, accessFile string) error {
	home, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the home cluster: %w", err)
	}
	namespace := os.Getenv("POD_NAMESPACE")
	provider, err := newProvider(namespace, secretLabel, accessFile)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("registering the kinds: %w", err)
	}
	lease, renew, retry := 4*time.Second, 3*time.Second, 500*time.Millisecond
	options := mcmanager.Options{
		LeaderElection:          true,
		LeaderElectionID:        os.Getenv("LOCK_NAME"),
		LeaderElectionNamespace: namespace,
		LeaseDuration:           &lease,
		RenewDeadline:           &renew,
		RetryPeriod:             &retry,
		Metrics:                 server.Options{BindAddress: "0"},
		Scheme:                  scheme,
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
