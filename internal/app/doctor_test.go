package app

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestJudgements before and at their edges.
func TestJudgements(t *testing.T) {
	for _, c := range []struct {
		judge func(*doctor)
		state string
	}{
		{func(d *doctor) { d.judgeDisk(lowDisk) }, "ok"},
		{func(d *doctor) { d.judgeDisk(lowDisk - 1) }, "warn"},
		{func(d *doctor) { d.judgeDisk(noDisk) }, "warn"},
		{func(d *doctor) { d.judgeDisk(noDisk - 1) }, "fail"},
		{func(d *doctor) { d.judgeSkew(skewWarns) }, "ok"},
		{func(d *doctor) { d.judgeSkew(-skewWarns - time.Millisecond) }, "warn"},
		{func(d *doctor) { d.judgeSkew(skewFails) }, "warn"},
		{func(d *doctor) { d.judgeSkew(-skewFails - time.Millisecond) }, "fail"},
		{func(d *doctor) { d.judgeSchema(3, 3) }, "ok"},
		{func(d *doctor) { d.judgeSchema(2, 3) }, "fail"},
		{func(d *doctor) { d.judgeSchema(4, 3) }, "fail"},
	} {
		var out bytes.Buffer
		d := &doctor{o: DoctorOptions{Streams: Streams{Out: &out}}}
		c.judge(d)
		if !strings.HasPrefix(out.String(), c.state+" ") || (d.failed == 1) != (c.state == "fail") {
			t.Errorf("want %s: %s", c.state, out.String())
		}
	}
}
