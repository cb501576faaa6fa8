package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// group runs the components until the first one ends or the process must stop. Then it ends all of them, since tests would hang
// on half a control plane instead of failing.
type group struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

func newGroup(parent context.Context) *group {
	ctx, cancel := context.WithCancelCause(parent)
	return &group{ctx: ctx, cancel: cancel}
}

func (g *group) add(name string, run func(context.Context) error) {
	g.wg.Go(func() {
		err := run(g.ctx)
		if g.ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("ended by itself")
		}
		g.cancel(fmt.Errorf("%s: %w", name, err))
	})
}

// failure prefers a component's own error to the error of a caller that waited for it.
func (g *group) failure(err error) error {
	if cause := context.Cause(g.ctx); cause != nil {
		return g.result(cause)
	}
	return err
}

// wait blocks until the group is over, gives the components the rest of the time, and then calls last. It does not wait for every
// goroutine, since some never end (the scheduler's queues, hijacked watches).
func (g *group) wait(timeout time.Duration, last func()) error {
	<-g.ctx.Done()
	deadline := time.AfterFunc(timeout, func() {
		klog.InfoS("Stopping took too long, leaving", "timeout", timeout)
		klog.Flush()
		os.Exit(exitCode(g.result(context.Cause(g.ctx))))
	})
	defer deadline.Stop()
	g.wg.Wait()
	last()
	return g.result(context.Cause(g.ctx))
}

func (g *group) result(cause error) error {
	if errors.Is(cause, errStopped) {
		return nil
	}
	return cause
}

func exitCode(err error) int {
	if err != nil {
		return 1
	}
	return 0
}
