package drain

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// DeadLetters is the file of records that a store refused: NDJSON that `ingest
// import` takes, and beside it a file of reasons, line by line. It is safe for
// concurrent use.
type DeadLetters struct {
	path string
	mu   sync.Mutex
}

// NewDeadLetters is the dead-letter file of a directory: dead-letters.ndjson,
// and dead-letters.reasons.ndjson beside it.
func NewDeadLetters(dir string) *DeadLetters {
	return &DeadLetters{path: filepath.Join(dir, "dead-letters.ndjson")}
}

// Path is where the records are, ReasonsPath where it says why.
func (f *DeadLetters) Path() string { return f.path }

// ReasonsPath is the file of reasons.
func (f *DeadLetters) ReasonsPath() string {
	return f.path[:len(f.path)-len(".ndjson")] + ".reasons.ndjson"
}

// add appends letters; when it returns they are durable. A batch that comes
// again may be there twice: that is harmless to an import.
func (f *DeadLetters) add(letters []deadLetter) error {
	var records, reasons []byte
	for _, l := range letters {
		records = append(l.attempt.AppendJSON(records), '\n')
		why, err := json.Marshal(map[string]any{
			"tenant": l.attempt.Tenant, "logical_id": l.attempt.LogicalID, "hop": l.attempt.Hop, "attempt": l.attempt.Attempt, "error": l.reason,
		})
		if err != nil {
			return err
		}
		reasons = append(append(reasons, why...), '\n')
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := errors.Join(appendTo(f.ReasonsPath(), reasons), appendTo(f.path, records)); err != nil {
		return fmt.Errorf("drain: dead letters: %w", err)
	}
	return nil
}

// appendTo appends whole lines, or nothing.
func appendTo(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	before, err := f.Seek(0, 2)
	if err == nil {
		if _, err = f.Write(text); err == nil {
			err = f.Sync()
		}
		if err != nil {
			err = errors.Join(err, f.Truncate(before))
		}
	}
	return errors.Join(err, f.Close())
}
