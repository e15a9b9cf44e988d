package drain_test

import (
	"os"
	"testing"
	"time"
)

// A line that a crash tore spoils no letter after it, in either file: it stays a
// line of its own.
func TestATornLineSpoilsNoOther(t *testing.T) {
	bad := func(n int) bool { return n%10 == 0 }
	inBubble(t, nil, func(r *rig) {
		for _, path := range []string{r.dead.Path(), r.dead.ReasonsPath()} {
			if err := os.WriteFile(path, []byte(`{"tenant":"t","logical_id":"torn`), 0o600); err != nil {
				r.t.Error(err)
			}
		}
		r.store.failWith(refuse(bad, each))
		r.segment(100)
		r.flush(time.Minute)
		if torn := r.requireLetters(bad); torn != 1 {
			r.t.Errorf("%d torn lines, want the one", torn)
		}
		for _, line := range lines(t, r.dead.ReasonsPath())[1:] {
			if line[0] != '{' || line[len(line)-1] != '}' {
				r.t.Errorf("a spoilt line: %s", line)
			}
		}
	})
}
