package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// diskMiB is the size of the small disk.
const diskMiB = 4

// disk is a small file system of its own, with one node's spool.
type disk struct{ dir string }

// mountDisk needs root: without, spools run full by their limit only.
func mountDisk(dir string, logger *slog.Logger) *disk {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=700", diskMiB))
	}
	if err != nil {
		logger.Warn("no small disk: a spool's limit stands for it", "err", err)
		return nil
	}
	return &disk{dir}
}

func (d *disk) unmount() error {
	if d == nil {
		return nil
	}
	return syscall.Unmount(d.dir, 0)
}

func (d *disk) filler() string { return filepath.Join(d.dir, "filler") }

// fill leaves not a byte.
func (d *disk) fill() error {
	f, err := os.Create(d.filler())
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 64 << 10; size > 0; {
		n, err := f.Write(make([]byte, size))
		switch {
		case errors.Is(err, syscall.ENOSPC):
			size = min(n, size/2)
		case err != nil:
			return err
		}
	}
	return nil
}

// fillDisk fills the small disk, tears the spool on it in the middle of that, and
// lets the node start on the full disk.
func (w *world) fillDisk(ctx context.Context) error {
	n := w.nodes[0]
	if err := w.disk.fill(); err != nil {
		return err
	}
	pause(ctx, time.Duration(500+w.rand.IntN(1500))*time.Millisecond)
	n.signal(syscall.SIGKILL)
	n.wait()
	err := errors.Join(os.Remove(w.disk.filler()), tearSegment(n.dir, w.rand.IntN(300)), w.disk.fill(), n.start())
	pause(ctx, time.Duration(1000+w.rand.IntN(2000))*time.Millisecond)
	return errors.Join(err, os.Remove(w.disk.filler()))
}

// tear kills a node and leaves an unfinished end, as a crash of the machine does.
func (w *world) tear(n *node) error {
	n.signal(syscall.SIGKILL)
	n.wait()
	err := tearSegment(n.dir, w.rand.IntN(300))
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, n.start())
}

// tearSegment appends bytes that are no record to the newest segment, if there is
// one.
func tearSegment(dir string, bytes int) error {
	segments, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(segments) == 0 {
		return err
	}
	f, err := os.OpenFile(slices.Max(segments), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, bytes))
	return errors.Join(err, f.Close())
}
