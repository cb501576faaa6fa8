// Command helm is Helm itself, for the tests of charts/ctrlmesh: the release that go.mod names, built by test/support/go-build.ts.
// Nothing of it is ours but this file, so that what passes here passes with the helm of a user.
package main

import (
	"errors"
	"fmt"
	"os"

	"helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"
)

func main() {
	// As the released program calls itself in managedFields: else every build would be another owner of the fields.
	kube.ManagedFieldsManager = "helm"
	root, err := cmd.NewRootCmd(os.Stdout, os.Args[1:], cmd.SetupLogging)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := root.Execute(); err != nil { // it has printed the error
		if failed, ok := errors.AsType[cmd.CommandError](err); ok {
			os.Exit(failed.ExitCode)
		}
		os.Exit(1)
	}
}
