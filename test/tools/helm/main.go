// Command helm is Helm itself, for the tests of charts/ctrlmesh: the release in go.mod, built by test/support/go-build.ts. Only
// this file belongs to the project, so the tests show what a user's helm does.
package main

import (
	"errors"
	"fmt"
	"os"

	"helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"
)

func main() {
	// The name of the released program in managedFields. Otherwise every build would be another owner of the fields.
	kube.ManagedFieldsManager = "helm"
	root, err := cmd.NewRootCmd(os.Stdout, os.Args[1:], cmd.SetupLogging)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := root.Execute(); err != nil { // it has already printed the error
		if failed, ok := errors.AsType[cmd.CommandError](err); ok {
			os.Exit(failed.ExitCode)
		}
		os.Exit(1)
	}
}
