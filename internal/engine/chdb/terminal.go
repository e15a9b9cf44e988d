//go:build linux && (amd64 || arm64)

package chdb

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A terminal is a pseudo-terminal that stands at file descriptors 0, 1 and 2.
//
// It makes the local session an interactive one.  In a non-interactive one
// clickhouse-local has Poco end the process at any exception in a connection's
// thread, so that one client's reset or garbage takes the whole engine along.
// Besides, failures of a start are told nowhere else.
type terminal struct {
	master *os.File

	mu   sync.Mutex
	last []byte // the end of what the session wrote
}

// keepTail is how much of the session's output is kept.
const keepTail = 16 << 10

// takeTerminal puts a terminal in place of file descriptors 0, 1 and 2.
func takeTerminal() (*terminal, error) {
	master, slave, err := openPTY()
	if err != nil {
		return nil, fmt.Errorf("chdb: cannot open a pseudo-terminal (is /dev/pts mounted?): %w", err)
	}
	defer unix.Close(slave)
	t := &terminal{master: master}
	for fd := range 3 {
		if err := unix.Dup3(slave, fd, 0); err != nil {
			return nil, fmt.Errorf("chdb: dup3: %w", err)
		}
	}
	go t.read()
	return t, nil
}

func openPTY() (*os.File, int, error) {
	m, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, 0, err
	}
	if err := unix.IoctlSetPointerInt(int(m.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return nil, 0, err
	}
	n, err := unix.IoctlGetInt(int(m.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, 0, err
	}
	s, err := unix.Open("/dev/pts/"+strconv.Itoa(n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	return m, s, err
}

// read drains the terminal: a session that cannot write would hang.
func (t *terminal) read() {
	b := make([]byte, 4096)
	for {
		n, err := t.master.Read(b)
		if err != nil {
			return
		}
		t.mu.Lock()
		t.last = append(t.last, b[:n]...)
		t.last = t.last[max(0, len(t.last)-keepTail):]
		t.mu.Unlock()
	}
}

// typeIn types s.  An error means that the session is gone, which is told elsewhere.
func (t *terminal) typeIn(s string) { _, _ = t.master.WriteString(s) }

// shows tells whether the end of what the session wrote has text in it.
func (t *terminal) shows(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Contains(t.last, []byte(text))
}

// errors are the lines in which the session told of failures, oldest first.
func (t *terminal) errors() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for l := range strings.SplitSeq(strings.ReplaceAll(string(t.last), "\r", ""), "\n") {
		if strings.HasPrefix(l, "Code: ") {
			out = append(out, strings.TrimSpace(l))
		}
	}
	return out
}
