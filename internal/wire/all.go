package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/retrylens/retrylens"
)

// MaxLine is the most bytes that one record may take, its line end not counted.
const MaxLine = 64 << 10

// DecodeAll reads NDJSON to its end and normalizes every record; it does not
// validate. It holds everything in memory and stops at the first bad line,
// which the error names: for tests and small files. Blank lines are skipped.
func DecodeAll(r io.Reader) ([]retrylens.Attempt, error) {
	var d Decoder
	var all []retrylens.Attempt
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxLine+2)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var a retrylens.Attempt
		if err := d.Decode(lines.Bytes(), &a); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		a.Normalize()
		all = append(all, a)
	}
	return all, lines.Err()
}
