package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// FS is what the spool does to the disk beyond reading: tests put faults
// between it and the real files.
type FS interface {
	Create(path string) (File, error) // a new file, open for writing
	Append(path string) (File, error) // one that exists or not, open for appending
	Truncate(path string, size int64) error
	Remove(path string) error
	Rename(from, to string) error
	SyncDir(dir string) error
}

// File is an open file of an FS.
type File interface {
	Write(p []byte) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// Disk is the file system of the machine.
type Disk struct{}

// Create makes a file that must not exist, and reads and writes for us only.
func (Disk) Create(path string) (File, error) {
	return opened(os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600))
}

// Append opens a file for appending, making it if need be.
func (Disk) Append(path string) (File, error) {
	return opened(os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600))
}

// opened keeps a nil *os.File from becoming a File that is not nil.
func opened(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Truncate cuts a file and makes that durable.
func (Disk) Truncate(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Sync(), f.Close())
}

// Remove removes a file.
func (Disk) Remove(path string) error { return os.Remove(path) }

// Rename gives a file another name in the same file system; one that has it
// already is replaced.
func (Disk) Rename(from, to string) error { return os.Rename(from, to) }

// SyncDir makes the entries of a directory durable.
func (Disk) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// makeDir makes a directory and what is missing above it. The names of new ones
// are durable when it returns.
func makeDir(fs FS, dir string) error {
	var missing []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, os.ErrNotExist) {
			break
		}
		missing = append(missing, d)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range missing {
		if err := fs.SyncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

// ErrLocked is returned by Open when another process has the directory.
var ErrLocked = errors.New("spool: another process uses the directory")

// lock takes the directory for this process; the lock ends with the file, or
// with the process.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(lockPath(dir), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%w: %s", ErrLocked, dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ErrReplaced is returned by Append: the directory is not the one that was opened; another process may have
// it.
var ErrReplaced = errors.New("spool: the directory was moved or replaced under the running service: restart it")

// holds tells whether a lock is still that of the directory.
func holds(locked *os.File, dir string) error {
	mine, err := locked.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(lockPath(dir))
	if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(mine, there) {
		return fmt.Errorf("%w: %s", ErrReplaced, dir)
	}
	return err
}

func lockPath(dir string) string { return filepath.Join(dir, "lock") }

func isFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
