// Package controller keeps a ConfigMap for each Foo: add.go says what is watched, reconciler.go what is done.
package controller

import (
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	demov1 "ctrlmesh.io/test/operators/go-foo/api/v1"
)

// AddToManager watches Foos and the ConfigMaps that they own. Both are read from the manager's cache.
func AddToManager(mgr ctrl.Manager, podName string) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("foo").
		For(&demov1.Foo{}).
		Owns(&corev1.ConfigMap{}).
		Complete(&Reconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme(), PodName: podName})
}
