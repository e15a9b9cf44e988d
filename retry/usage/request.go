package usage

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Request is what the body of a request says of itself at its top.
type Request struct {
	Model  string // at most 128 bytes
	Stream bool
}

// ReadRequest reads the top-level members model and stream of a JSON body; what is none
// says nothing.
func ReadRequest(body []byte) (r Request) {
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return r
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return r
		}
		key := name.String()
		if key != "model" && key != "stream" {
			if d.SkipValue() != nil {
				return r
			}
			continue
		}
		v, err := d.ReadToken()
		if err != nil {
			return r
		}
		switch k := v.Kind(); {
		case key == "model" && k == '"':
			r.Model = v.String()[:min(len(v.String()), maxToken)]
		case key == "stream":
			r.Stream = k == 't'
		case k == '{' || k == '[': // a model that is none
			for depth := d.StackDepth(); d.StackDepth() >= depth; {
				if _, err := d.ReadToken(); err != nil {
					return r
				}
			}
		}
	}
	return r
}
