package main

import (
	"errors"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// namespaceFile is the file with the pod's own namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// election names the lease.
type election struct {
	id            string
	namespace     string
	renewDeadline time.Duration
}

// lock is controller-runtime's own with another identity. The default is the host's name, which in a pod is the pod's name. Here
// pods may be processes that share a host name, so the identity has the pod's name.
func (e election) lock(config *rest.Config, scheme *runtime.Scheme, podName string) (resourcelock.Interface, error) {
	if e.namespace == "" {
		content, err := os.ReadFile(namespaceFile)
		if err != nil {
			return nil, errors.Join(errors.New("neither --leader-election-namespace nor $POD_NAMESPACE is set"), err)
		}
		e.namespace = strings.TrimSpace(string(content))
	}
	own := rest.CopyConfig(config)
	if own.UserAgent == "" {
		own.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	own.UserAgent += "/leader-election"
	// One hanging request must not cost the lease.
	own.Timeout = max(time.Second, e.renewDeadline/2)
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, err
	}
	identity := podName + "_" + string(uuid.NewUUID())
	events := record.NewBroadcaster()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events(e.namespace)})
	return resourcelock.New(resourcelock.LeasesResourceLock, e.namespace, e.id, client.CoreV1(), client.CoordinationV1(),
		resourcelock.ResourceLockConfig{
			Identity:      identity,
			EventRecorder: events.NewRecorder(scheme, corev1.EventSource{Component: identity}),
		})
}
