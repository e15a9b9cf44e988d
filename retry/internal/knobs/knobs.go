// Package knobs reads and writes the settings of package retry and its parts as
// JSON, with durations as text ("500ms") and unknown names refused. It holds no
// setting of its own.
package knobs

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var (
	encode = json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, d time.Duration) error {
		return e.WriteToken(jsontext.String(d.String()))
	}))
	decode = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, out *time.Duration) error {
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		if t.Kind() != '"' {
			return fmt.Errorf(`want a duration such as "500ms"`)
		}
		*out, err = time.ParseDuration(t.String())
		return err
	}))
)

// Marshal encodes a struct of knobs.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, encode) }

// Unmarshal decodes into a struct of knobs: what the text does not name keeps its
// value, an unknown name is an error that tells it.
func Unmarshal(b []byte, v any) error {
	return json.Unmarshal(b, v, decode, json.RejectUnknownMembers(true))
}
