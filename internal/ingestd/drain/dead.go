package drain

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/retrylens/retrylens/internal/spool"
)

// DeadLetters is the file of records that a store refused: NDJSON that `ingest
// import` takes, and beside it a file of reasons. It is safe for concurrent use.
type DeadLetters struct {
	path string
	fs   spool.FS
	mu   sync.Mutex
}

// NewDeadLetters is the dead-letter file of a directory: dead-letters.ndjson,
// and dead-letters.reasons.ndjson beside it.
func NewDeadLetters(dir string) *DeadLetters {
	return &DeadLetters{path: filepath.Join(dir, "dead-letters.ndjson"), fs: spool.Disk{}}
}

// Path is where the records are, ReasonsPath where it says why.
func (f *DeadLetters) Path() string { return f.path }

// ReasonsPath is the file of reasons.
func (f *DeadLetters) ReasonsPath() string {
	return f.path[:len(f.path)-len(".ndjson")] + ".reasons.ndjson"
}

// reason is a line of the file of reasons.
type reason struct {
	place
	Error string `json:"error"`
}

// place tells a record of a segment from the others.
type place struct {
	Segment   uint64 `json:"segment"`
	Tenant    string `json:"tenant"`
	LogicalID string `json:"logical_id"`
	Hop       string `json:"hop"`
	Attempt   int32  `json:"attempt"`
}

// add appends the letters of a segment, which are durable when it returns, and
// tells how many were missing. With again set, what is in the files already is left
// out: an earlier try for that segment may have written all of it or a part.
func (f *DeadLetters) add(segment uint64, letters []deadLetter, again bool) (added int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if added, err = f.addLocked(segment, letters, again); err != nil {
		return added, fmt.Errorf("drain: dead letters: %w", err)
	}
	return added, nil
}

func (f *DeadLetters) addLocked(segment uint64, letters []deadLetter, again bool) (added int, err error) {
	written, explained := map[string]bool{}, map[place]bool{}
	if again {
		if written, explained, err = f.already(segment, letters); err != nil {
			return 0, err
		}
	}
	var records, reasons []byte
	for _, l := range letters {
		if line := l.attempt.AppendJSON(nil); !written[string(line)] {
			records = append(append(records, line...), '\n')
			added++
		}
		where := placeOf(segment, l)
		if explained[where] {
			continue
		}
		why, err := json.Marshal(reason{where, l.reason})
		if err != nil {
			return 0, err
		}
		reasons = append(append(reasons, why...), '\n')
	}
	if err := f.appendTo(f.ReasonsPath(), reasons); err != nil {
		return added, err
	}
	return added, f.appendTo(f.path, records)
}

func placeOf(segment uint64, l deadLetter) place {
	return place{segment, l.attempt.Tenant, l.attempt.LogicalID, string(l.attempt.Hop), l.attempt.Attempt}
}

// already finds which of the letters are in the files.
func (f *DeadLetters) already(segment uint64, letters []deadLetter) (written map[string]bool, explained map[place]bool, err error) {
	written, explained = map[string]bool{}, map[place]bool{}
	for _, l := range letters {
		written[string(l.attempt.AppendJSON(nil))] = false
	}
	err = eachLine(f.path, func(line []byte) {
		if _, ours := written[string(line)]; ours {
			written[string(line)] = true
		}
	})
	if err != nil {
		return nil, nil, err
	}
	err = eachLine(f.ReasonsPath(), func(line []byte) {
		var r reason
		if json.Unmarshal(line, &r) == nil && r.Segment == segment {
			explained[r.place] = true
		}
	})
	return written, explained, err
}

// eachLine calls f with every finished line of a file that need not exist.
func eachLine(path string, f func(line []byte)) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // a torn line is no line
		}
		if err != nil {
			return err
		}
		f(line[:len(line)-1])
	}
}

// appendTo appends whole lines and makes them and the file's name durable. What
// a crash left of a line stays a line of its own: it spoils no other.
func (f *DeadLetters) appendTo(path string, text []byte) error {
	if len(text) > 0 {
		size, torn, err := endOf(path)
		if err != nil {
			return err
		}
		if torn {
			text = append([]byte{'\n'}, text...)
		}
		if err := f.write(path, size, text); err != nil {
			return err
		}
	}
	// Even when all is there: who wrote it may have failed at this.
	return f.fs.SyncDir(filepath.Dir(path))
}

func (f *DeadLetters) write(path string, size int64, text []byte) error {
	file, err := f.fs.Append(path)
	if err != nil {
		return err
	}
	if _, err = file.Write(text); err == nil {
		err = file.Sync()
	}
	if err != nil {
		err = errors.Join(err, file.Truncate(size))
	}
	return errors.Join(err, file.Close())
}

// endOf is the size of a file and whether its last line is unfinished.
func endOf(path string) (size int64, torn bool, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return 0, false, err
	}
	var last [1]byte
	_, err = file.ReadAt(last[:], info.Size()-1)
	return info.Size(), last[0] != '\n', err
}
