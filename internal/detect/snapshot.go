package detect

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"
)

// snapshotVersion changes with the layout of what is packed.
const snapshotVersion = 2

// snapshot is a series as JSON. What it has learned is packed: little-endian entries.
type snapshot struct {
	Version int `json:"version"`
	Key
	State   State     `json:"state"`
	Since   time.Time `json:"since"`
	Began   time.Time `json:"incident,omitzero"`
	Fell    bool      `json:"first_attempts_fell,omitempty"`
	Last    time.Time `json:"at"`
	Judged  time.Time `json:"judged_at,omitzero"`
	Strikes int       `json:"strikes,omitempty"`
	Strike  State     `json:"strike,omitempty"`
	Said    time.Time `json:"said_at,omitzero"`
	Clean   int       `json:"clean,omitempty"`
	Learned int       `json:"learned,omitempty"`

	Drifts    [6]float64         `json:"drifts"`
	Sustained float64            `json:"sustained,omitempty"`
	Shifted   [2]int             `json:"shifted"`
	Classes   map[string]float64 `json:"classes,omitempty"`
	Samples   int                `json:"class_samples,omitempty"`

	Base    baseline `json:"baseline"`
	History []byte   `json:"history,omitempty"` // the oldest first
	Waiting []byte   `json:"waiting,omitempty"`
	Shape   []byte   `json:"shape,omitempty"`
	Hour    []byte   `json:"hour,omitempty"` // entries of the hour that goes on
	Now     uint8    `json:"hour_of_week,omitempty"`
}

// Snapshot is the state of a series as JSON that Restore takes back; nil of one that is
// not known. About 20 KB once a day has been learned: whoever stores it every round need
// only do so for series that have changed ([Evaluation.Changed]) and, now and then, all.
func (d *Detector) Snapshot(k Key) ([]byte, error) {
	s := d.series[k]
	if s == nil {
		return nil, nil
	}
	out := snapshot{
		Version: snapshotVersion, Key: k, State: s.state, Since: s.since, Began: s.began, Fell: s.fell, Last: s.last, Judged: s.judged,
		Strikes: s.strikes, Strike: s.strike, Said: s.said, Clean: s.clean, Learned: s.learned, Drifts: s.drifts, Sustained: s.sustained, Shifted: s.shifted, Base: s.base,
		Classes: s.classes.Rates, Samples: s.classes.Samples,
	}
	h := &s.history
	ordered := append(append([]entry(nil), h.ring[h.next:]...), h.ring[:h.next]...)
	var err error
	for _, p := range []struct {
		to    *[]byte
		value any
	}{{&out.History, ordered}, {&out.Waiting, h.waiting}} {
		if *p.to, err = pack(p.value); err != nil {
			return nil, err
		}
	}
	if s.shape != nil {
		out.Now = s.shape.now
		if out.Shape, err = pack(&s.shape.Hours); err != nil {
			return nil, err
		}
		if out.Hour, err = pack(s.shape.sums); err != nil {
			return nil, err
		}
	}
	return json.Marshal(out)
}

// Restore puts a series back as it was. An error says what is wrong with the bytes; nothing
// has changed then.
func (d *Detector) Restore(data []byte) error {
	var in snapshot
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("detect: snapshot: %w", err)
	}
	if in.Version != snapshotVersion {
		return fmt.Errorf("detect: snapshot of version %d, want %d: leave it out and learn anew", in.Version, snapshotVersion)
	}
	s := newSeries(in.Key, in.Since)
	if err := s.restore(&in); err != nil {
		return fmt.Errorf("detect: snapshot of %v: %w", in.Key, err)
	}
	if d.series[in.Key] == nil {
		d.sorted = nil
	}
	d.series[in.Key] = s
	return nil
}

func (s *series) restore(in *snapshot) error {
	if !validState(in.State) || in.Strike != "" && !validState(in.Strike) {
		return fmt.Errorf("unknown state %.40q", in.State)
	}
	s.state, s.began, s.fell, s.last, s.judged = in.State, in.Began, in.Fell, in.Last, in.Judged
	s.strikes, s.strike, s.said, s.clean, s.learned = in.Strikes, in.Strike, in.Said, in.Clean, in.Learned
	s.drifts, s.sustained, s.shifted, s.base = in.Drifts, in.Sustained, in.Shifted, in.Base
	s.classes = classRates{in.Classes, in.Samples}
	var err error
	if s.history.ring, err = unpack(in.History, day); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	if s.history.waiting, err = unpack(in.Waiting, quarantine); err != nil {
		return fmt.Errorf("waiting: %w", err)
	}
	if in.Shape == nil {
		return nil
	}
	s.shape = &profile{now: in.Now}
	if _, err := binary.Decode(in.Shape, binary.LittleEndian, &s.shape.Hours); err != nil || in.Now >= hours {
		return fmt.Errorf("shape: %d bytes of hour %d: %w", len(in.Shape), in.Now, err)
	}
	if s.shape.sums, err = unpack(in.Hour, day); err != nil {
		return fmt.Errorf("hour: %w", err)
	}
	return nil
}

func validState(s State) bool {
	for _, known := range States {
		if s == known {
			return true
		}
	}
	return false
}

func pack(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
		return nil, fmt.Errorf("detect: pack: %w", err)
	}
	return b.Bytes(), nil
}

// unpack reads at most so many entries, each of an hour of the week.
func unpack(data []byte, most int) ([]entry, error) {
	size := binary.Size(entry{})
	if len(data)%size != 0 || len(data)/size > most {
		return nil, fmt.Errorf("%d bytes are no %d entries of %d", len(data), most, size)
	}
	out := make([]entry, len(data)/size)
	if _, err := binary.Decode(data, binary.LittleEndian, out); err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].Hour >= hours {
			return nil, fmt.Errorf("hour of the week %d", out[i].Hour)
		}
	}
	return out, nil
}
