package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/engine/datadir"
)

// launch has `engine start` start an engine and returns when it answers.  That
// command is the engine's parent and leaves at once, so the engine is nobody's
// child here: no zombie, no signal of our terminal, no end of a pipe of ours.
func launch(ctx context.Context, o Options, d datadir.Dir) error {
	bin, err := FindBinary(o.Binary)
	if err != nil {
		return err
	}
	lib, err := FindLibrary(o.Library)
	if err != nil {
		return err
	}
	began := time.Now()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, bin, o.startArgs(d, lib)...)
	cmd.Stderr = &stderr
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if err == nil {
		o.Logger.Debug("engine started", "dir", d, "took", time.Since(began))
		return nil
	}
	return launchError(ctx, err, stderr.String())
}

func (o Options) startArgs(d datadir.Dir, lib string) []string {
	return []string{
		"start",
		"--data=" + string(d),
		"--lib=" + lib,
		"--http=" + strconv.Itoa(o.HTTPPort),
		"--tcp=" + strconv.Itoa(o.TCPPort),
		"--linger=" + o.Linger.String(),
		"--memory=" + strconv.FormatInt(o.MemoryBytes, 10),
		"--log-level=" + o.LogLevel,
		"--start-timeout=" + o.StartTimeout.String(),
	}
}

func launchError(ctx context.Context, err error, stderr string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return FromExit(exit.ExitCode(), strings.TrimSpace(stderr))
	}
	return fmt.Errorf("engine: cannot run the engine: %w", err)
}
