package controller

import (
	"context"
	"syscall"
	"testing"
	"time"
)

func processCPU() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func TestWorkTakesItsProcessorTime(t *testing.T) {
	before := processCPU()
	Work{CPU: 50 * time.Millisecond}.do(t.Context())
	if took := processCPU() - before; took < 50*time.Millisecond {
		t.Errorf("took %v of processor time", took)
	}
}

func TestWorkStopsWaitingWhenTheOperatorEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	Work{Wait: time.Hour}.do(ctx)
}
