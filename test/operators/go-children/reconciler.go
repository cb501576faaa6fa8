package main

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

var fooKind = schema.GroupVersionKind{Group: "demo.ctrlmesh.io", Version: "v1", Kind: "Foo"}

// reconciler creates the missing children of a Foo. It reads from the manager's cache, as most operators do.
type reconciler struct {
	client   client.Client
	scheme   *runtime.Scheme
	recorder events.EventRecorder
	podName  string
	// created has the children that this process created and its cache does not show yet. Without it a reconcile that runs before the
	// cache is up to date would create them twice.
	created sync.Map
}

// addToManager watches Foos and their children. Each kind has an informer.
func addToManager(mgr ctrl.Manager, podName string) error {
	builder := ctrl.NewControllerManagedBy(mgr).Named("children").For(newFoo())
	for _, c := range children {
		builder = builder.Owns(c.blank())
	}
	return builder.Complete(&reconciler{
		client:   mgr.GetClient(),
		scheme:   mgr.GetScheme(),
		recorder: mgr.GetEventRecorder("go-children"),
		podName:  podName,
	})
}

func newFoo() *unstructured.Unstructured {
	foo := &unstructured.Unstructured{}
	foo.SetGroupVersionKind(fooKind)
	return foo
}

// Reconcile implements reconcile.Reconciler. It ends at the first error and is then repeated.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	foo := newFoo()
	if err := r.client.Get(ctx, req.NamespacedName, foo); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if foo.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	say(line{Foo: req.String(), Step: "begun"})
	for _, c := range children {
		if err := r.ensure(ctx, foo, c); err != nil {
			say(line{Foo: req.String(), Kind: c.kind, Error: err.Error(), Code: codeOf(err)})
			return ctrl.Result{}, err
		}
	}
	say(line{Foo: req.String(), Step: "reconciled"})
	return ctrl.Result{}, nil
}

func (r *reconciler) ensure(ctx context.Context, foo *unstructured.Unstructured, c child) error {
	id := c.kind + " " + client.ObjectKeyFromObject(foo).String()
	object := c.blank()
	err := r.client.Get(ctx, client.ObjectKeyFromObject(foo), object)
	if err == nil {
		r.created.Delete(id)
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	if _, expected := r.created.Load(id); expected {
		return nil // its event causes the next reconcile
	}
	object.SetNamespace(foo.GetNamespace())
	object.SetName(foo.GetName())
	c.fill(object)
	if err := controllerutil.SetControllerReference(foo, object, r.scheme); err != nil {
		return err
	}
	if err := r.client.Create(ctx, object); err != nil {
		return err
	}
	r.created.Store(id, nil)
	say(line{Foo: client.ObjectKeyFromObject(foo).String(), Kind: c.kind, Step: "created"})
	r.recorder.Eventf(foo, object, corev1.EventTypeNormal, "Created", "Create", "%s created by %s", c.kind, r.podName)
	return nil
}

// codeOf is the HTTP code of an error, 0 if the API server did not answer.
func codeOf(err error) int32 {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}
