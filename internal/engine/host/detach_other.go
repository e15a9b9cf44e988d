//go:build !linux

package host

import "os/exec"

// detachProcess does nothing: there is no engine here to detach.
func detachProcess(*exec.Cmd) {}
