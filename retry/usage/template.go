package usage

import "bytes"

// template is the last event with content. Its successors mostly differ from it in a
// few values only: the text, a sequence number. An event that is equal to it but for
// these is understood without reading it again.
type template struct {
	raw    [maxTemplate]byte
	n      int // bytes of raw; 0 = no template
	leaves [maxLeaves]leaf
	nLeaf  int
	slots  [maxSlots]uint8 // leaves that differ between events, in their order
	nSlot  int
}

const (
	maxTemplate = 1 << 10
	maxLeaves   = 32
	maxSlots    = 6
)

// leaf is a value whose content may differ without changing what the event means.
type leaf struct {
	start, end uint16
	act        action // aNone, a figure, or a kind of text
	number     bool
}

// variable tells whether a value of this action may differ.
func variable(a action) bool {
	switch a {
	case aNone, aText, aTextOnly, aInnerText, aAnswer, aReasoning:
		return true
	}
	return a >= aFigure
}

// leaves gathers those of the event being read.
type leaves struct {
	base   []byte // from the first byte of the event on; nil = not gathering
	at     int    // where the part given to the document starts
	list   [maxLeaves]leaf
	n      int
	failed bool
}

// leaf is told of each value by the document.
func (r *Reader) leaf(d *document, start, end int, number bool) {
	g := &r.gathered
	if g.base == nil || d.nested || !variable(d.act) {
		return
	}
	start, end = start+g.at, end+g.at
	if g.n == maxLeaves || end > maxTemplate {
		g.failed = true
		return
	}
	g.list[g.n] = leaf{uint16(start), uint16(end), d.act, number}
	g.n++
}

// learn makes the event of n bytes the template.
func (r *Reader) learn(n int) {
	g, t := &r.gathered, &r.tmpl
	if g.failed || n > maxTemplate {
		return
	}
	slots := [maxSlots]uint8{}
	nSlot := 0
	like := r.like(n)
	for i := range g.n {
		differs := g.list[i].act != aNone && !g.list[i].number
		if like {
			differs = differs || t.varies(i) || !bytes.Equal(t.value(i), g.base[g.list[i].start:g.list[i].end])
		}
		if !differs {
			continue
		}
		if nSlot == maxSlots {
			return
		}
		slots[nSlot] = uint8(i)
		nSlot++
	}
	t.n, t.leaves, t.nLeaf, t.slots, t.nSlot = copy(t.raw[:], g.base[:n]), g.list, g.n, slots, nSlot
	r.told = false
}

// outdated forgets the template after an event that told figures or a model of its own:
// those that stand in the template are no longer the last ones.
func (r *Reader) outdated() {
	if r.told {
		r.tmpl.n, r.told = 0, false
	}
}

func (t *template) value(i int) []byte { return t.raw[t.leaves[i].start:t.leaves[i].end] }

func (t *template) varies(i int) bool { return bytes.IndexByte(t.slots[:t.nSlot], byte(i)) >= 0 }

// like tells whether the event that was read is equal to the template but for leaves.
func (r *Reader) like(n int) bool {
	g, t := &r.gathered, &r.tmpl
	if t.n == 0 || t.nLeaf != g.n {
		return false
	}
	was, is := 0, 0
	for i := range g.n {
		a, b := t.leaves[i], g.list[i]
		if a.act != b.act || a.number != b.number || !bytes.Equal(t.raw[was:a.start], g.base[is:b.start]) {
			return false
		}
		was, is = int(a.end), int(b.end)
	}
	return bytes.Equal(t.raw[was:t.n], g.base[is:n])
}

// match reads an event at the beginning of p that is the template but for the values
// that differ, and returns its length; 0 if it is none.
func (r *Reader) match(p []byte) int {
	t := &r.tmpl
	if t.n == 0 {
		return 0
	}
	var values [maxSlots][]byte
	at, was := 0, 0
	for i := range t.nSlot {
		l := &t.leaves[t.slots[i]]
		fixed := t.raw[was:l.start]
		if len(p)-at < len(fixed) || string(p[at:at+len(fixed)]) != string(fixed) {
			return 0
		}
		at += len(fixed)
		n := plain(p[at:], l.number)
		if n == 0 && (l.number || l.act != aNone) {
			return 0
		}
		values[i] = p[at : at+n]
		at, was = at+n, int(l.end)
	}
	tail := t.raw[was:t.n]
	if len(p)-at < len(tail) || string(p[at:at+len(tail)]) != string(tail) {
		return 0
	}
	r.matched(values[:t.nSlot])
	return at + len(tail)
}

// plain is how many bytes at the beginning of p are the inside of a string without
// escapes, or digits. What ends it is compared with the template.
func plain(p []byte, number bool) int {
	for i, c := range p {
		if number && (c < '0' || c > '9') || !number && (c == '"' || c == '\\' || c < ' ') {
			return i
		}
	}
	return len(p)
}

// matched takes the values of an event with content.
func (r *Reader) matched(values [][]byte) {
	for i, v := range values {
		switch l := &r.tmpl.leaves[r.tmpl.slots[i]]; {
		case l.act >= aFigure:
			r.counts.put(field(l.act-aFigure), v)
		case l.act != aNone:
			r.seen.bytes += int64(len(v))
		}
	}
	r.now.content = true
}
