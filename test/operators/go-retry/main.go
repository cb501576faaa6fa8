// Command go-retry watches in the ways of client-go that start without a list: from the version of one object, by RetryWatcher or
// UntilWithoutRetry. Or it runs many informers of different shapes. It knows nothing of a mesh. It prints what it sees as JSON lines on
// stdout (../README.md).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	var object objectFlags
	with := flag.String("with", "retry", "retry (RetryWatcher), until (UntilWithoutRetry) or informers")
	flag.StringVar(&object.resource, "resource", "configmaps.v1.", "resource.version.group of the object")
	flag.StringVar(&object.namespace, "namespace", "", "namespace of the object; empty for a cluster-scoped one")
	flag.StringVar(&object.name, "name", "", "the object, which is created if it does not exist")
	flag.BoolVar(&object.everywhere, "everywhere", false, "watch all objects of the resource instead of the object's namespace")
	flag.DurationVar(&object.within, "within", time.Minute, "fail if the object is not deleted within this time")
	count := flag.Int("informers", 20, "number of informers, with --with=informers")
	namespace := flag.String("informer-namespace", "default", "namespace of the informers that watch one namespace")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err == nil {
		err = run(ctx, config, *with, object, *count, *namespace)
	}
	if err != nil {
		say(line{Error: err.Error()})
		klog.Exit(err)
	}
}

func run(ctx context.Context, config *rest.Config, with string, object objectFlags, count int, namespace string) error {
	switch with {
	case "retry":
		return watchObject(ctx, config, object, retry)
	case "until":
		return watchObject(ctx, config, object, until)
	case "informers":
		return runInformers(ctx, config, count, namespace)
	default:
		return fmt.Errorf("--with=%s is neither retry, until nor informers", with)
	}
}
