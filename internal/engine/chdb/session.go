//go:build linux && (amd64 || arm64)

package chdb

import (
	"runtime"
	"runtime/debug"
	"time"
)

// A Session is the engine, running.  There can be one in a process, once.
type Session struct {
	lib  *library
	tty  *terminal
	done chan error
}

// Start loads the library and runs it on a thread of its own; Up tells when it
// answers.  From here on file descriptors 0 to 2 belong to the engine: who has
// something to say needs a duplicate of them, made before.
func Start(o Options) (*Session, error) {
	lib, err := load(o.Library)
	if err != nil {
		return nil, err
	}
	tty, err := takeTerminal()
	if err != nil {
		return nil, err
	}
	if err := debug.SetCrashOutput(o.CrashOutput, debug.CrashOptions{}); err != nil {
		return nil, err
	}
	s := &Session{lib: lib, tty: tty, done: make(chan error, 1)}
	go func() {
		runtime.LockOSThread()
		// Never unlocked: what Confine did to the thread must not reach others.
		if err := o.Confine(); err != nil {
			s.done <- err
			return
		}
		s.done <- lib.cmdline(o.args())
	}()
	return s, nil
}

// Done gets one value when the engine has ended: nil, or why.
func (s *Session) Done() <-chan error { return s.done }

// Up tells whether both listeners were started.
func (s *Session) Up() bool { return len(s.Errors()) == 0 && s.tty.shows(upMark) }

// Version is the release of the library.
func (s *Session) Version() string { return s.lib.version() }

// Errors are the last failures that the engine told, oldest first: lines that
// start with "Code: ".
func (s *Session) Errors() []string { return s.tty.errors() }

// Stop asks the session to leave until stopped is closed, after which nobody
// listens any more.  It returns at once; Done tells when the engine has ended.
func (s *Session) Stop(stopped <-chan struct{}) {
	go func() {
		t := time.NewTicker(50 * time.Millisecond)
		defer t.Stop()
		for {
			s.tty.typeIn("exit\r")
			select {
			case <-stopped:
				return
			case <-t.C:
			}
		}
	}()
}
