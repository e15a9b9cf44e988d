package host

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// detachProcess gives the child a session of its own and none of our open files
// but standard input, output and error.
func detachProcess(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// Go opens files close-on-exec; what was inherited without may not be.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
}
