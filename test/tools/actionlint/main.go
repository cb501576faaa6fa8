// Command actionlint is actionlint itself, for the test of .github/workflows: the release in go.mod, built by test/support/go-build.ts. Only
// this file belongs to the project.
package main

import (
	"os"

	"github.com/rhysd/actionlint"
)

func main() {
	command := actionlint.Command{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	os.Exit(command.Main(os.Args))
}
