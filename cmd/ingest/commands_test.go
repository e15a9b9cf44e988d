package main

import (
	"testing"

	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/app/cli/clitest"
)

func TestEveryFlagIsDocumented(t *testing.T) {
	clitest.Documented(t, newCommand(app.Streams{}), "../../docs/cli.md")
}
