package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/multicluster-runtime/pkg/clusters"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// inventory takes the other clusters from ClusterProfiles. Each profile that it sees is a cluster.
type inventory struct {
	clusters.Clusters[cluster.Cluster]
	access  *access.Config
	manager mcmanager.Manager
}

func newInventory(accessFile string) (*inventory, error) {
	config, err := access.NewFromFile(accessFile)
	if err != nil {
		return nil, fmt.Errorf("reading the access providers: %w", err)
	}
	return &inventory{Clusters: clusters.New[cluster.Cluster](), access: config}, nil
}

func (i *inventory) SetupWithManager(_ context.Context, manager mcmanager.Manager) error {
	i.manager = manager
	i.ErrorHandler = func(err error, message string, keysAndValues ...any) { klog.ErrorS(err, message, keysAndValues...) }
	return ctrl.NewControllerManagedBy(manager.GetLocalManager()).Named("inventory").For(&v1alpha1.ClusterProfile{}).Complete(i)
}

// Reconcile adds the cluster of a profile, or removes it when the profile is gone.
func (i *inventory) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	name := multicluster.ClusterName(request.Name)
	profile := &v1alpha1.ClusterProfile{}
	if err := i.manager.GetLocalManager().GetClient().Get(ctx, request.NamespacedName, profile); err != nil {
		if client.IgnoreNotFound(err) == nil {
			i.Remove(name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if _, err := i.Get(ctx, name); err == nil {
		return ctrl.Result{}, nil
	}
	config, err := i.access.BuildConfigFromCP(profile)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the profile %s: %w", name, err)
	}
	config.UserAgent = "writer/" + os.Getenv("POD_NAME")
	other, err := cluster.New(config)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("connecting to the cluster %s: %w", name, err)
	}
	return ctrl.Result{}, i.Add(ctx, name, other, i.manager)
}
