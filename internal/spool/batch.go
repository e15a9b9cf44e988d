package spool

import (
	"encoding/binary"
	"sync"

	"github.com/retrylens/retrylens"
)

// chunkBytes is the size of the pieces that a Batch grows by.
const chunkBytes = 64 << 10

var chunks = sync.Pool{New: func() any {
	b := make([]byte, 0, chunkBytes)
	return &b
}}

// Batch is records on their way into a spool. The zero Batch is empty and ready;
// it is not safe for concurrent use.
type Batch struct {
	chunks []*[]byte
	rows   int
	bytes  int64
}

// Add encodes a normalized, valid attempt. Nothing of the batch refers to it.
func (b *Batch) Add(a *retrylens.Attempt) {
	if len(b.chunks) == 0 || len(*b.last()) > chunkBytes-frameHeader-MaxRecord {
		b.chunks = append(b.chunks, chunks.Get().(*[]byte))
	}
	last := b.last()
	start := len(*last)
	frame := AppendRecord(append(*last, make([]byte, frameHeader)...), a)
	binary.LittleEndian.PutUint32(frame[start:], uint32(len(frame)-start-frameHeader))
	*last = frame
	b.rows++
	b.bytes += int64(len(frame) - start)
}

func (b *Batch) last() *[]byte { return b.chunks[len(b.chunks)-1] }

// Rows is how many records there are.
func (b *Batch) Rows() int { return b.rows }

// Bytes is how many bytes they take in the spool.
func (b *Batch) Bytes() int64 { return b.bytes }

// Held is how much memory they take.
func (b *Batch) Held() int64 { return int64(len(b.chunks)) * chunkBytes }

// Reset empties the batch and gives its memory back.
func (b *Batch) Reset() {
	for _, c := range b.chunks {
		*c = (*c)[:0]
		chunks.Put(c)
	}
	*b = Batch{chunks: b.chunks[:0]}
}

// clone is a copy that another goroutine may keep.
func (b *Batch) clone() *Batch {
	c := &Batch{rows: b.rows, bytes: b.bytes}
	for _, p := range b.chunks {
		q := append([]byte(nil), *p...)
		c.chunks = append(c.chunks, &q)
	}
	return c
}
