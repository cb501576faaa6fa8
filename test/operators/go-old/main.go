// Command go-old is an operator of 2021: client-go 0.20, informers from a factory and from the dynamic client, and the locks of
// that client-go. It knows nothing of a mesh. It prints what it sees and whether it leads as JSON lines on stdout (../README.md),
// and while it leads it writes a ConfigMap for each Foo.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

const (
	leaseDuration = 4 * time.Second
	renewDeadline = 3 * time.Second
	retryPeriod   = 500 * time.Millisecond
)

var foos = schema.GroupVersionResource{Group: "demo.ctrlmesh.io", Version: "v1", Resource: "foos"}

func main() {
	lockType := flag.String("lock", resourcelock.LeasesResourceLock, "endpoints, configmaps, leases, endpointsleases or configmapsleases")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *lockType); err != nil {
		klog.Exit(err)
	}
}

func run(ctx context.Context, lockType string) error {
	podName, namespace, lockName := os.Getenv("POD_NAME"), os.Getenv("POD_NAMESPACE"), os.Getenv("LOCK_NAME")
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	typed := rest.CopyConfig(config)
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return err
	}
	lock, err := resourcelock.New(lockType, namespace, lockName, client.CoreV1(), client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: podName + "_" + string(uuid.NewUUID())})
	if err != nil {
		return err
	}

	core := informers.NewSharedInformerFactory(client, 0)
	custom := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0)
	w := newWriter(client, podName, lockName)
	report(core.Core().V1().ConfigMaps().Informer(), "configmaps")
	fooInformer := custom.ForResource(foos).Informer()
	report(fooInformer, "foos")
	fooInformer.AddEventHandler(w)
	core.Start(ctx.Done())
	custom.Start(ctx.Done())
	core.WaitForCacheSync(ctx.Done())
	custom.WaitForCacheSync(ctx.Done())

	// Most operators exit when they lose the lease. This one competes again, since the tests restart its lower layers.
	for ctx.Err() == nil {
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock:            lock,
			LeaseDuration:   leaseDuration,
			RenewDeadline:   renewDeadline,
			RetryPeriod:     retryPeriod,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					say(line{Leading: &yes})
					w.run(ctx, fooInformer.GetStore())
				},
				OnStoppedLeading: func() { say(line{Leading: &no}) },
			},
		})
	}
	return nil
}
