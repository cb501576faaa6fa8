package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// writer maintains a ConfigMap <foo>-by-$LOCK_NAME for each Foo while it leads.
type writer struct {
	client   kubernetes.Interface
	podName  string
	lockName string
	queue    workqueue.RateLimitingInterface
}

func newWriter(client kubernetes.Interface, podName, lockName string) *writer {
	queue := workqueue.NewRateLimitingQueue(workqueue.DefaultControllerRateLimiter())
	return &writer{client: client, podName: podName, lockName: lockName, queue: queue}
}

func (w *writer) OnAdd(object interface{})       { w.add(object) }
func (w *writer) OnUpdate(_, object interface{}) { w.add(object) }
func (w *writer) OnDelete(object interface{})    {}

func (w *writer) add(object interface{}) {
	if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
		w.queue.Add(key)
	}
}

// run writes until the lead is lost. It also processes what it saw before it led.
func (w *writer) run(ctx context.Context, store cache.Store) {
	for _, key := range store.ListKeys() {
		w.queue.Add(key)
	}
	for ctx.Err() == nil {
		item, ended := w.queue.Get()
		if ended {
			return
		}
		if _, exists, _ := store.GetByKey(item.(string)); !exists || ctx.Err() != nil {
			w.queue.Done(item)
			continue
		}
		if err := w.write(ctx, item.(string)); err != nil {
			klog.ErrorS(err, "writing", "foo", item)
			w.queue.AddRateLimited(item)
		} else {
			w.queue.Forget(item)
		}
		w.queue.Done(item)
	}
}

func (w *writer) write(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	configMaps := w.client.CoreV1().ConfigMaps(namespace)
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-by-" + w.lockName},
		Data:       map[string]string{"by": w.podName},
	}
	current, err := configMaps.Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = configMaps.Create(ctx, want, metav1.CreateOptions{})
		return err
	}
	if err != nil || current.Data["by"] == w.podName {
		return err
	}
	current.Data = want.Data
	_, err = configMaps.Update(ctx, current, metav1.UpdateOptions{})
	return err
}
