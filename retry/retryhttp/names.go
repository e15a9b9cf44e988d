package retryhttp

import "sync/atomic"

// names keeps the last few texts, so that a model's name that comes with every answer
// is made a string once.
type names struct{ slots [16]atomic.Pointer[string] }

func (n *names) get(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	slot := &n.slots[(len(b)+int(b[len(b)-1])*7+int(b[len(b)/2]))%len(n.slots)]
	if p := slot.Load(); p != nil && *p == string(b) {
		return *p
	}
	s := string(b)
	slot.Store(&s)
	return s
}
