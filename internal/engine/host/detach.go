package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/datadir"
)

// portTries is how often a start is tried anew when a port that was free a moment
// ago is not any more.
const portTries = 5

// keepLog is the size from which an engine.log is set aside at a start.
const keepLog = 1 << 20

// Detach starts an engine in a process and session of its own, whose standard
// output and error are DIR/engine.log, and returns when it answers.  The engine
// outlives the caller, and no signal of its terminal reaches it.
func Detach(ctx context.Context, o Options) (datadir.State, error) {
	if err := o.Validate(); err != nil {
		return datadir.State{}, err
	}
	d, err := datadir.Open(o.Dir)
	if err != nil {
		return datadir.State{}, fmt.Errorf("%w: %w", engine.ErrLocked, err)
	}
	o.Dir = string(d)
	for try := 1; ; try++ {
		s, err := detachOnce(ctx, d, o)
		chosen := o.HTTPPort != 0 || o.TCPPort != 0
		if chosen || try == portTries || !errors.Is(err, engine.ErrPortBusy) {
			return s, err
		}
	}
}

func detachOnce(ctx context.Context, d datadir.Dir, o Options) (datadir.State, error) {
	log, from, err := openLog(d.EngineLog())
	if err != nil {
		return datadir.State{}, fmt.Errorf("%w: %w", engine.ErrLocked, err)
	}
	defer log.Close()
	cmd, err := command(d, o, log)
	if err != nil {
		return datadir.State{}, err
	}
	if err := cmd.Start(); err != nil {
		return datadir.State{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	s, err := awaitReady(ctx, d, o, cmd.Process, ended)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return s, engine.FromExit(exit.ExitCode(), logText(log.Name(), from))
	}
	return s, err
}

func command(d datadir.Dir, o Options, log *os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, o.serveArgs()...)
	cmd.Dir = string(d)
	cmd.Stdout, cmd.Stderr = log, log
	detachProcess(cmd)
	return cmd, nil
}

// awaitReady waits for engine.json of the child.  The child has a deadline itself;
// if it hangs so that even this does not work, it is ended from here.
func awaitReady(ctx context.Context, d datadir.Dir, o Options, p *os.Process, ended <-chan error) (datadir.State, error) {
	timeout := o.StartTimeout + 2*time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, timeout,
		fmt.Errorf("%w: the engine hung in its start for %v and was killed; see %s", engine.ErrTimeout, timeout, d.EngineLog()))
	defer cancel()
	for {
		l, s, err := d.Look()
		if err == nil && l == datadir.Ready && s.PID == p.Pid {
			return s, nil
		}
		select {
		case err := <-ended:
			return s, err
		default:
		}
		if err := datadir.Pause(ctx); err != nil {
			return s, errors.Join(err, p.Kill())
		}
	}
}

// openLog opens the log for appending and returns how long it was.
func openLog(name string) (*os.File, int64, error) {
	if fi, err := os.Stat(name); err == nil && fi.Size() > keepLog {
		if err := os.Rename(name, name+".1"); err != nil {
			return nil, 0, err
		}
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, err
	}
	fi, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, fi.Size(), nil
}

// logText is the end of what was logged after offset from.
func logText(name string, from int64) string {
	f, err := os.Open(name)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const keep = 4096
	if fi, err := f.Stat(); err == nil {
		from = max(from, fi.Size()-keep)
	}
	b, err := io.ReadAll(io.NewSectionReader(f, from, keep))
	if err != nil {
		return err.Error()
	}
	return strings.TrimPrefix(strings.TrimSpace(string(b)), "Error: ")
}
