package controller

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	demov1 "ctrlmesh.io/test/operators/go-foo/api/v1"
)

var key = types.NamespacedName{Namespace: "a", Name: "f"}

// world is a fake API server that counts writes.
type world struct {
	client.Client
	t      *testing.T
	scheme *runtime.Scheme
	writes int
}

func newWorld(t *testing.T) *world {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = demov1.AddToScheme(scheme)
	w := &world{t: t, scheme: scheme}
	foo := &demov1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "1", Generation: 1},
		Spec:       demov1.FooSpec{Message: "hello"},
	}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(foo).WithStatusSubresource(foo).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				w.writes++
				return c.Create(ctx, o, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				w.writes++
				return c.Update(ctx, o, opts...)
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				w.writes++
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
		}).Build()
	return w
}

func (w *world) reconcileAs(pod string) (*demov1.Foo, *corev1.ConfigMap) {
	w.t.Helper()
	r := &Reconciler{Client: w.Client, Scheme: w.scheme, PodName: pod}
	result, err := r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil || !result.IsZero() {
		w.t.Fatalf("got %v, %v", result, err)
	}
	foo, cm := &demov1.Foo{}, &corev1.ConfigMap{}
	if err := w.Get(w.t.Context(), key, foo); err != nil {
		w.t.Fatal(err)
	}
	if err := w.Get(w.t.Context(), types.NamespacedName{Namespace: "a", Name: "f-data"}, cm); err != nil {
		w.t.Fatal(err)
	}
	return foo, cm
}

func TestAFooGetsAConfigMapThatItOwnsAndAStatus(t *testing.T) {
	foo, cm := newWorld(t).reconcileAs("pod-0")
	if cm.Data["message"] != "hello" || !metav1.IsControlledBy(cm, foo) {
		t.Errorf("got data %v, owners %v", cm.Data, cm.OwnerReferences)
	}
	if want := (demov1.FooStatus{ReconciledBy: "pod-0", Count: 1, ObservedGeneration: 1}); foo.Status != want {
		t.Errorf("got %+v, want %+v", foo.Status, want)
	}
}

func TestReconcilingAgainWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.reconcileAs("pod-0")
	before := w.writes
	foo, _ := w.reconcileAs("pod-0")
	if w.writes != before || foo.Status.Count != 1 {
		t.Errorf("got %d writes more, count %d", w.writes-before, foo.Status.Count)
	}
}

func TestAnotherPodCountsOnce(t *testing.T) {
	w := newWorld(t)
	w.reconcileAs("pod-0")
	w.reconcileAs("pod-1")
	foo, _ := w.reconcileAs("pod-1")
	if foo.Status.Count != 2 || foo.Status.ReconciledBy != "pod-1" {
		t.Errorf("got %+v", foo.Status)
	}
}

func TestAnOperatorBesideAnotherWritesItsOwnConfigMapAndNoStatus(t *testing.T) {
	w := newWorld(t)
	r := &Reconciler{Client: w.Client, Scheme: w.scheme, PodName: "pod-0", Beside: true}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	foo, cm := &demov1.Foo{}, &corev1.ConfigMap{}
	if err := w.Get(t.Context(), key, foo); err != nil || foo.Status.Count != 0 {
		t.Errorf("got %+v, %v", foo.Status, err)
	}
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: "a", Name: "f-beside"}, cm); err != nil {
		t.Fatal(err)
	}
	if cm.Data["message"] != "hello" || cm.Data["by"] != "pod-0" || w.writes != 1 {
		t.Errorf("got %v after %d writes", cm.Data, w.writes)
	}
}

func TestAFooThatIsGoneIsNoError(t *testing.T) {
	w := newWorld(t)
	if err := w.Delete(t.Context(), &demov1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "f"}}); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Client: w.Client, Scheme: w.scheme, PodName: "pod-0"}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Error(err)
	}
}
