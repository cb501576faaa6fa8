package main

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	demov1 "ctrlmesh.io/test/operators/go-webhooks/api/v1"
)

// reconciledBy is the annotation with the pod that last reconciled a Gadget.
const reconciledBy = "demo.ctrlmesh.io/reconciled-by"

// reconciler writes an annotation on each Gadget, which the operator's own webhooks are asked about.
type reconciler struct {
	client  client.Client
	podName string
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	gadget := &demov1.Gadget{}
	if err := r.client.Get(ctx, req.NamespacedName, gadget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if gadget.Annotations[reconciledBy] == r.podName || !gadget.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	before := gadget.DeepCopy()
	if gadget.Annotations == nil {
		gadget.Annotations = map[string]string{}
	}
	gadget.Annotations[reconciledBy] = r.podName
	return ctrl.Result{}, client.IgnoreNotFound(r.client.Patch(ctx, gadget, client.MergeFrom(before)))
}
