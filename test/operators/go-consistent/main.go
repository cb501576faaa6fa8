// Command go-consistent is a client on controller-runtime with EnableReadYourWritesConsistency: a read waits until the cache has seen
// the client's own writes. It writes ConfigMaps without a pause, reads each back, and prints how long the reads waited as JSON lines on
// stdout (../README.md). It knows nothing of a mesh.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	namespaces := flag.String("namespaces", "", "namespaces to write to, with commas; none is only a cache")
	pause := flag.Duration("pause", 20*time.Millisecond, "the pause between two rounds in a namespace")
	ctrl.SetLogger(klog.Background())
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, strings.Fields(strings.ReplaceAll(*namespaces, ",", " ")), *pause); err != nil {
		klog.Exit(err)
	}
}

func run(ctx context.Context, namespaces []string, pause time.Duration) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	config.QPS = -1 // no limit, so that reads and writes are as frequent as they can be
	informers, err := cache.New(config, cache.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return fmt.Errorf("making the cache: %w", err)
	}
	consistent := true
	options := client.Options{
		Scheme: clientgoscheme.Scheme,
		Cache:  &client.CacheOptions{Reader: informers, EnableReadYourWritesConsistency: &consistent},
	}
	c, err := client.New(config, options)
	if err != nil {
		return fmt.Errorf("making the client: %w", err)
	}
	var group sync.WaitGroup
	group.Go(func() { _ = informers.Start(ctx) })
	informer, err := informers.GetInformer(ctx, &corev1.ConfigMap{})
	if err != nil {
		return fmt.Errorf("starting the informer: %w", err)
	}
	if shared, ok := informer.(toolscache.SharedIndexInformer); ok {
		group.Go(func() { reportVersion(ctx, shared.GetStore()) })
	}
	say(line{Ready: true})
	for _, namespace := range namespaces {
		w := &worker{client: c, namespace: namespace, prefix: os.Getenv("POD_NAME") + "-"}
		group.Go(func() {
			for every(ctx, pause) {
				w.round(ctx)
			}
		})
	}
	group.Wait()
	return nil
}

// reportVersion prints the version up to which the store has seen everything, as controllers read it that compare it with the
// versions of their own writes.
func reportVersion(ctx context.Context, store toolscache.Store) {
	last := ""
	for every(ctx, 50*time.Millisecond) {
		if version := store.LastStoreSyncResourceVersion(); version != last {
			last = version
			say(line{Store: "configmaps", Version: version})
		}
	}
}

func every(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
