package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// A State is engine.json: where the engine that runs answers.  No secret is in it.
type State struct {
	PID       int       `json:"pid"`
	HTTPAddr  string    `json:"http_addr"`
	TCPAddr   string    `json:"tcp_addr"`
	Version   string    `json:"version"` // of ClickHouse, as SELECT version() gives it
	Library   string    `json:"library"` // the release of libchdb.so
	StartedAt time.Time `json:"started_at"`
}

// Liveness is what a look at a data directory finds.
type Liveness int

// What a look may find.
const (
	Dead  Liveness = iota // no engine
	Busy                  // an engine that does not answer yet, or no longer
	Ready                 // an engine that answers where State says
)

// Look tells whether an engine runs in d, and where if it is Ready.
func (d Dir) Look() (Liveness, State, error) {
	lives, err := d.EngineLives()
	if err != nil || !lives {
		return Dead, State{}, err
	}
	s, err := d.readState()
	if errors.Is(err, fs.ErrNotExist) {
		return Busy, State{}, nil
	}
	if err != nil {
		return Busy, State{}, err
	}
	return Ready, s, nil
}

func (d Dir) readState() (State, error) {
	var s State
	b, err := os.ReadFile(d.StateFile())
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("datadir: %s is damaged (%w): end the engine of this directory by its process id and run the command again, it starts another one", d.StateFile(), err)
	}
	return s, nil
}

// WriteState is for the holder of the engine lock only.
func (d Dir) WriteState(s State) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(d.StateFile(), append(b, '\n'), 0o600)
}

// RemoveState is for the holder of the engine lock only: first thing when it has
// it, as one that was killed leaves its state behind, and first thing when it stops.
func (d Dir) RemoveState() error {
	if err := os.Remove(d.StateFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
