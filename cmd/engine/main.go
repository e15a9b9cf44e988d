// Command engine runs the embedded ClickHouse of a data directory.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/retrylens/retrylens/internal/engine"
)

func main() {
	// The library takes file descriptors 0 to 2; what we say goes to duplicates.
	stdout, stderr := keep(os.Stdout), keep(os.Stderr)
	syscall.Umask(0o077)
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
	// Whoever asks a second time gets it at once.
	context.AfterFunc(ctx, cancel)

	cmd := newCommand(stdout, stderr)
	err := cmd.ExecuteContext(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(stderr, err)
	}
	os.Exit(engine.ExitCode(err))
}

// keep duplicates f, or returns it if that is impossible.
func keep(f *os.File) *os.File {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return f
	}
	return os.NewFile(uintptr(fd), f.Name())
}
