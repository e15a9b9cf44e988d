package keys

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Store keeps the key of an intent. Implementations are safe for concurrent use.
type Store interface {
	// PutIfAbsent makes key the key of intent and returns it once it is durable, or
	// returns the one that intent has already.
	PutIfAbsent(ctx context.Context, intent, key string) (string, error)
}

// Obtain returns the key of intent, the same after every restart: the one that was kept
// before or a new one, durable before Obtain returns and so before the first byte is
// sent under it. intent is what the caller knows again after a crash: the id of a queue
// message, of a row, of a job.
func Obtain(ctx context.Context, s Store, intent string) (string, error) {
	if intent == "" {
		return "", errors.New("keys: the intent is empty; give what names it after a restart, such as the id of the message")
	}
	key, err := s.PutIfAbsent(ctx, intent, New())
	if err != nil {
		return "", fmt.Errorf("keys: the key was not kept, so nothing must be sent under it: %w", err)
	}
	return key, nil
}

// Dir is a Store in a directory: one small file per intent, synced before PutIfAbsent
// returns. It works between processes of one machine. Files are the caller's to delete
// once the intent can no longer come back.
type Dir string

// PutIfAbsent as in [Store]. The directory is made if it is missing.
func (d Dir) PutIfAbsent(_ context.Context, intent, key string) (string, error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(string(d), Derive(intent))
	if kept, err := os.ReadFile(path); err == nil {
		return string(kept), syncDir(string(d)) // its writer may not have come so far
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	err := d.link(path, key)
	if errors.Is(err, fs.ErrExist) { // another process was first
		kept, err := os.ReadFile(path)
		return string(kept), errors.Join(err, syncDir(string(d)))
	}
	return key, err
}

// link gives path its content at once and durably, unless it has one.
func (d Dir) link(path, key string) error {
	tmp, err := os.CreateTemp(string(d), "new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(key)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(string(d))
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
