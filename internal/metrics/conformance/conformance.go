// Package conformance is the suite that every implementation of the derived
// metrics must pass: scripts (see package script) for every sentence of their
// definition. Nothing else lives here.
package conformance

import (
	"embed"
	"io/fs"
	"testing"

	"github.com/retrylens/retrylens/internal/metrics/script"
)

//go:embed scripts/*.txt
var files embed.FS

// Scripts holds every script at its top.
func Scripts() fs.FS {
	sub, err := fs.Sub(files, "scripts")
	if err != nil {
		panic(err) // the directory is embedded above
	}
	return sub
}

// Run holds a folder to every script.
func Run(t *testing.T, folder script.Folder) {
	t.Helper()
	script.RunDir(t, Scripts(), folder)
}
