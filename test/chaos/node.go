package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// node is one ingest process after another on the same spool and port.
type node struct {
	bin, dir, addr, store string
	limitMiB              int // of the spool

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
	log    *os.File
}

func newNode(bin, dir, store string) (*node, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // a free port, for good
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(dir+".log", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &node{bin: bin, dir: dir, addr: addr, store: store, log: log, limitMiB: 2}, nil
}

func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	cmd := exec.Command(filepath.Join(n.bin, "ingest"), "serve", "--store", n.store, "--migrate", "--spool", n.dir,
		"--spool-limit", strconv.Itoa(n.limitMiB), "--listen", n.addr, "--tokens", filepath.Join(filepath.Dir(n.dir), "tokens.ndjson"), "--grace", "3s")
	cmd.Stderr = n.log
	if err := cmd.Start(); err != nil {
		return err
	}
	n.cmd, n.exited = cmd, make(chan struct{})
	go func(exited chan struct{}) {
		_ = cmd.Wait()
		close(exited)
	}(n.exited)
	return nil
}

// signal sends a signal to the process of now.
func (n *node) signal(s syscall.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.cmd.Process.Signal(s)
}

// restart waits for the end of the process and starts the next one.
func (n *node) restart() error {
	n.wait()
	return n.start()
}

func (n *node) wait() {
	n.mu.Lock()
	exited := n.exited
	n.mu.Unlock()
	select {
	case <-exited:
	case <-time.After(20 * time.Second):
		n.signal(syscall.SIGKILL)
		<-exited
	}
}

// spoolBytes asks the node.
func (n *node) spoolBytes() (int64, error) {
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get("http://" + n.addr + "/readyz?require=spool")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var answer struct{ Spool struct{ Bytes int64 } }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return 0, fmt.Errorf("readyz: %w", err)
	}
	return answer.Spool.Bytes, nil
}
