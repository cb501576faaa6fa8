package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const readyTimeout = 60 * time.Second

// waitForAPIServer waits for /readyz and for the objects that every cluster has from the start.
func waitForAPIServer(ctx context.Context, s *state) error {
	return poll(ctx, s, "the API server", func(ctx context.Context, c kubernetes.Interface) error {
		if err := c.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
			return err
		}
		if _, err := c.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err
		}
		_, err := c.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
		return err
	})
}

// waitForControllers waits for the namespace's default ServiceAccount, without which admission refuses the first pod.
func waitForControllers(ctx context.Context, s *state) error {
	return poll(ctx, s, "the controllers", func(ctx context.Context, c kubernetes.Interface) error {
		if _, err := c.CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}); err != nil {
			return err
		}
		_, err := c.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func poll(ctx context.Context, s *state, what string, check func(context.Context, kubernetes.Interface) error) error {
	config, err := adminClientConfig(s)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx, client)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w (last: %v)", what, err, last)
	}
	return nil
}
