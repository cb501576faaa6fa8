package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

const (
	// label is that of the ConfigMaps that the operator writes to.
	label = "multicluster.ctrlmesh.io/write"
	pause = 25 * time.Millisecond
)

type reconciler struct {
	manager mcmanager.Manager
}

func setUpReconciler(manager mcmanager.Manager) error {
	isMeant := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetLabels()[label] == "true" })
	return mcbuilder.ControllerManagedBy(manager).
		Named("writer").
		For(&corev1.ConfigMap{}, mcbuilder.WithPredicates(isMeant), mcbuilder.WithEngageWithLocalCluster(false)).
		Complete(&reconciler{manager: manager})
}

// Reconcile writes once, and asks for the next write.
func (r *reconciler) Reconcile(ctx context.Context, request mcreconcile.Request) (ctrl.Result, error) {
	cluster, err := r.manager.GetCluster(ctx, request.ClusterName)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("finding the cluster %s: %w", request.ClusterName, err)
	}
	configMap := &corev1.ConfigMap{}
	if err := cluster.GetClient().Get(ctx, request.NamespacedName, configMap); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	changed := configMap.DeepCopy()
	changed.Data = map[string]string{"by": os.Getenv("POD_NAME"), "at": strconv.FormatInt(time.Now().UnixNano(), 10)}
	if err := cluster.GetClient().Patch(ctx, changed, client.MergeFrom(configMap)); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing to the cluster %s: %w", request.ClusterName, err)
	}
	return ctrl.Result{RequeueAfter: pause}, nil
}
