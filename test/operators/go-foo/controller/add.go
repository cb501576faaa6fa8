// Package controller maintains a ConfigMap for each Foo: add.go has the watches, reconciler.go the actions.
package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	demov1 "ctrlmesh.io/test/operators/go-foo/api/v1"
)

// AddToManager watches Foos and their ConfigMaps. Both are read from the manager's cache. `events` counts what the watches deliver
// after the initial lists.
func AddToManager(mgr ctrl.Manager, podName string, beside bool, work Work, events prometheus.Counter) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("foo").
		For(&demov1.Foo{}).
		Owns(&corev1.ConfigMap{}).
		WithEventFilter(counting(events)).
		WithOptions(controller.Options{MaxConcurrentReconciles: work.Workers}).
		Complete(&Reconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme(), PodName: podName, Beside: beside, Work: work})
}

// counting lets every event pass.
func counting(events prometheus.Counter) predicate.Predicate {
	count := func() bool {
		events.Inc()
		return true
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return e.IsInInitialList || count() },
		UpdateFunc:  func(event.UpdateEvent) bool { return count() },
		DeleteFunc:  func(event.DeleteEvent) bool { return count() },
		GenericFunc: func(event.GenericEvent) bool { return count() },
	}
}
