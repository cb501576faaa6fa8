package main

import (
	"context"
	"fmt"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controllermanageroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/spf13/pflag"
)

// controlPlane holds the parsed options of the three components. It does not use their cobra commands, since each would set the
// process's feature gates, logger and signal handlers itself. It uses their options and Run functions with one registry of
// feature gates, set once after all flags are known.
type controlPlane struct {
	apiServer         *apiserveroptions.ServerRunOptions
	controllerManager *controllermanageroptions.KubeControllerManagerOptions
	scheduler         *scheduleroptions.Options
}

func configure(opts *options, s *state) (*controlPlane, error) {
	p := &controlPlane{apiServer: apiserveroptions.NewServerRunOptions(), scheduler: scheduleroptions.NewOptions()}
	var err error
	if p.controllerManager, err = controllermanageroptions.NewKubeControllerManagerOptions(); err != nil {
		return nil, err
	}
	if err := parse("kube-apiserver", p.apiServer.Flags(), apiServerArgs(opts, s)); err != nil {
		return nil, err
	}
	p.apiServer.Authentication.TokenSuccessCacheTTL = opts.tokenCache
	controllers := p.controllerManager.Flags(controllermanager.KnownControllers(), controllermanager.ControllersDisabledByDefault(), controllermanager.ControllerAliases())
	if err := parse("kube-controller-manager", controllers, controllerManagerArgs(opts, s)); err != nil {
		return nil, err
	}
	if err := parse("kube-scheduler", *p.scheduler.Flags, schedulerArgs(s)); err != nil {
		return nil, err
	}
	registry := p.apiServer.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return nil, fmt.Errorf("setting feature gates: %w", err)
	}
	registry.FeatureGateFor(basecompatibility.DefaultKubeComponent).(featuregate.MutableFeatureGate).AddMetrics()
	// The components watch deprecated kinds on purpose and would log a warning at every list.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	return p, nil
}

func parse(component string, sets cliflag.NamedFlagSets, args []string) error {
	all := pflag.NewFlagSet(component, pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		all.AddFlagSet(set)
	}
	// Errors are returned. The usage text of hundreds of lines must not go to stderr.
	all.Usage = func() {}
	if err := all.Parse(args); err != nil {
		return fmt.Errorf("flags of %s: %w", component, err)
	}
	return nil
}

func (p *controlPlane) runAPIServer(ctx context.Context) error {
	completed, err := p.apiServer.Complete(ctx)
	if err != nil {
		return err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return utilerrors.NewAggregate(errs)
	}
	return apiserver.Run(ctx, completed)
}

func (p *controlPlane) runControllerManager(ctx context.Context) error {
	config, err := p.controllerManager.Config(ctx, controllermanager.KnownControllers(),
		controllermanager.ControllersDisabledByDefault(), controllermanager.ControllerAliases())
	if err != nil {
		return err
	}
	return controllermanager.Run(ctx, config.Complete())
}

func (p *controlPlane) runScheduler(ctx context.Context) error {
	config, s, err := scheduler.Setup(ctx, p.scheduler)
	if err != nil {
		return err
	}
	return scheduler.Run(ctx, config, s)
}
