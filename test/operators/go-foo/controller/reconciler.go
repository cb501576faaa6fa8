package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	demov1 "ctrlmesh.io/test/operators/go-foo/api/v1"
)

// staleRetry is the time that the cache gets to catch up with the API server.
const staleRetry = 100 * time.Millisecond

// Reconciler writes the Foo's message into the ConfigMap <foo>-data. It writes only a difference, so a second run on the same
// state writes nothing.
type Reconciler struct {
	Client  client.Client
	Scheme  *runtime.Scheme
	PodName string
	// Beside makes it write <foo>-beside, which names the pod, instead of <foo>-data and the status. So it can work on the Foos of
	// another operator.
	Beside bool
	// Work is done at the end of each reconcile.
	Work Work
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	foo := &demov1.Foo{}
	if err := r.Client.Get(ctx, req.NamespacedName, foo); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !foo.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the ConfigMap.
		return ctrl.Result{}, nil
	}
	defer r.Work.do(ctx)
	err := r.writeConfigMap(ctx, foo)
	if err == nil && !r.Beside {
		err = r.writeStatus(ctx, foo)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		// The cache is behind. That is no failure: the next run sees the latest write.
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

func (r *Reconciler) writeConfigMap(ctx context.Context, foo *demov1.Foo) error {
	suffix := "-data"
	if r.Beside {
		suffix = "-beside"
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: foo.Namespace, Name: foo.Name + suffix}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data["message"] = foo.Spec.Message
		if r.Beside {
			cm.Data["by"] = r.PodName
		}
		return controllerutil.SetControllerReference(foo, cm, r.Scheme)
	})
	if err != nil {
		return fmt.Errorf("writing configmap %s: %w", cm.Name, err)
	}
	return nil
}

func (r *Reconciler) writeStatus(ctx context.Context, foo *demov1.Foo) error {
	if foo.Status.ObservedGeneration == foo.Generation && foo.Status.ReconciledBy == r.PodName {
		return nil
	}
	// The resource version prevents two writers from counting the same work.
	foo.Status.Count++
	foo.Status.ObservedGeneration = foo.Generation
	foo.Status.ReconciledBy = r.PodName
	if err := r.Client.Status().Update(ctx, foo); err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	ctrl.LoggerFrom(ctx).Info("reconciled", "generation", foo.Generation, "count", foo.Status.Count)
	return nil
}
