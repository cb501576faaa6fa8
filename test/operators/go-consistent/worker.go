package main

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long a read may wait. Without a bound, a version that the cache never sees would block it for ever.
const patience = 90 * time.Second

// finalizer lets an update delete an object: the last write then has a version of its own.
const finalizer = "example.com/consistent"

// line is one line of the output for the test.
type line struct {
	Ready bool `json:"ready,omitempty"`
	// Store and Version are the version up to which a store has seen everything.
	Store   string `json:"store,omitempty"`
	Version string `json:"version,omitempty"`
	// Namespace and Step are what was done, and Millis how long it took.
	Namespace string  `json:"namespace,omitempty"`
	Step      string  `json:"step,omitempty"`
	Millis    float64 `json:"ms,omitempty"`
	Error     string  `json:"error,omitempty"`
	Code      int     `json:"code,omitempty"`
}

var (
	mu  sync.Mutex
	out = json.NewEncoder(os.Stdout)
)

func say(l line) {
	mu.Lock()
	defer mu.Unlock()
	_ = out.Encode(l)
}

// worker writes to one namespace and reads its own writes.
type worker struct {
	client    client.Client
	namespace string
	prefix    string
	count     int
}

// round creates, updates and deletes a ConfigMap in turn, and reads after each write. A refused write is read after as well: nothing
// may keep the reads of an operator that has just lost a namespace.
func (w *worker) round(ctx context.Context) {
	w.count++
	want := strconv.Itoa(w.count)
	name := w.prefix + want
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Finalizers: []string{finalizer}},
		Data:       map[string]string{"count": want},
	}
	isCreated := w.did("create", func() error { return w.client.Create(ctx, object) })
	w.read(ctx, name, func(got *corev1.ConfigMap) bool { return !isCreated || got.Data["count"] == want })
	if !isCreated {
		return
	}
	before := object.DeepCopy()
	object.Data["count"] = want + "-updated"
	isUpdated := w.did("update", func() error { return w.client.Patch(ctx, object, client.MergeFrom(before)) })
	w.read(ctx, name, func(got *corev1.ConfigMap) bool { return !isUpdated || got.Data["count"] == want+"-updated" })
	isDeleted := w.did("delete", func() error { return w.client.Delete(ctx, object) })
	w.read(ctx, name, func(got *corev1.ConfigMap) bool { return !isDeleted || got.DeletionTimestamp != nil })
	before = object.DeepCopy()
	object.Finalizers = nil
	w.did("finalize", func() error { return w.client.Patch(ctx, object, client.MergeFrom(before)) })
	w.read(ctx, name, func(*corev1.ConfigMap) bool { return true })
}

// read gets the object and lists its kind. Both wait for the writes before them. A namespace that is lost has no objects.
func (w *worker) read(ctx context.Context, name string, isCurrent func(*corev1.ConfigMap) bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: w.namespace, Name: name}
	started := time.Now()
	err := w.client.Get(ctx, key, got)
	l := w.line("get", started, client.IgnoreNotFound(err))
	if err == nil && !isCurrent(got) {
		l.Error = "the read lacks the write before it"
	}
	say(l)
	started = time.Now()
	err = w.client.List(ctx, &corev1.ConfigMapList{})
	say(w.line("list", started, err))
}

func (w *worker) did(step string, do func() error) bool {
	started := time.Now()
	err := do()
	say(w.line(step, started, err))
	return err == nil
}

func (w *worker) line(step string, started time.Time, err error) line {
	l := line{Namespace: w.namespace, Step: step, Millis: float64(time.Since(started).Microseconds()) / 1000}
	if err != nil {
		l.Error = err.Error()
		l.Code = codeOf(err)
	}
	return l
}

// codeOf is the HTTP code of an answer; 0 if there was none.
func codeOf(err error) int {
	if status, ok := err.(apierrors.APIStatus); ok {
		return int(status.Status().Code)
	}
	return 0
}
