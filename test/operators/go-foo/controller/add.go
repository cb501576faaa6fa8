// Package controller maintains a ConfigMap for each Foo: add.go has the watches, reconciler.go the actions.
package controller

import (
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	demov1 "ctrlmesh.io/test/operators/go-foo/api/v1"
)

// AddToManager watches Foos and their ConfigMaps. Both are read from the manager's cache.
func AddToManager(mgr ctrl.Manager, podName string) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("foo").
		For(&demov1.Foo{}).
		Owns(&corev1.ConfigMap{}).
		Complete(&Reconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme(), PodName: podName})
}
