package clickhouse

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/maypok86/otter/v2"

	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/rollup"
)

// The rows of a bucket of one version never change, so neither does what the buckets of
// a piece of a series add up to: a series that is asked for again and again, each time a little
// later, as pages and dashboards do, is read anew only where buckets were computed anew.
const (
	piecesBytes  = 64 << 20 // that are kept, about
	mostPiece    = 200      // rows of a piece that is kept
	pieceRowSize = 1400     // bytes of a row without what follows, about
	mapEntrySize = 60       // of an entry of a map of counters
	sketchEntry  = 16       // of a bucket of a sketch
)

// pieceKey tells pieces apart: by what is asked, and by each bucket with its version.
type pieceKey [sha256.Size]byte

// piece is what the buckets add up to that lie in one bucket of a series.
type piece struct {
	key     pieceKey
	buckets map[rollup.Level][]rollup.Bucket
	rows    []pieceRow
}

// pieceRow is the sum of one group. It is shared and must not be changed.
type pieceRow struct {
	key      metrics.Key
	counters metrics.Counters
	sketches *[2]metrics.Sketch // nil = none
}

func (p *piece) weight() uint32 {
	n := pieceRowSize
	for _, r := range p.rows {
		n += pieceRowSize + mapEntrySize*r.counters.Entries()
		for _, d := range r.key.Dims {
			n += len(d)
		}
		if r.sketches != nil {
			n += sketchEntry * (r.sketches[0].Buckets() + r.sketches[1].Buckets())
		}
	}
	return uint32(n)
}

type pieceCache = otter.Cache[pieceKey, *piece]

func newPieceCache() *pieceCache {
	return otter.Must(&otter.Options[pieceKey, *piece]{
		MaximumWeight: piecesBytes, Weigher: func(_ pieceKey, p *piece) uint32 { return p.weight() },
	})
}

// piecesOf are those of a series, by their start in Unix milliseconds; none of a report
// without buckets.
func piecesOf(r rollupQuery) map[int64]*piece {
	step := r.Bucket.Milliseconds()
	if step == 0 {
		return nil
	}
	out := map[int64]*piece{}
	for l, buckets := range r.plan.Buckets {
		for _, b := range buckets {
			start := b.Start - b.Start%step
			p := out[start]
			if p == nil {
				p = &piece{buckets: map[rollup.Level][]rollup.Bucket{}}
				out[start] = p
			}
			p.buckets[l] = append(p.buckets[l], b)
		}
	}
	asked := askedSum(r.Query)
	for _, p := range out {
		p.key = p.sum(asked)
	}
	return out
}

// askedSum stands for everything of a query that decides what a bucket adds to it.
func askedSum(q metrics.Query) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %d %q %t", q.GroupBy, q.Bucket, q.Needs, sketched(q))
	for _, d := range metrics.Dimensions {
		fmt.Fprintf(h, " %q", q.Filters[d])
	}
	return h.Sum(nil)
}

func (p *piece) sum(asked []byte) (key pieceKey) {
	h := sha256.New()
	h.Write(asked)
	for _, l := range rollup.Levels {
		for _, b := range p.buckets[l] {
			var head [17]byte
			head[0] = byte(levelCode(l))
			binary.LittleEndian.PutUint64(head[1:], uint64(b.Start))
			binary.LittleEndian.PutUint64(head[9:], b.Version)
			h.Write(head[:])
		}
	}
	h.Sum(key[:0])
	return key
}

// readPieces are those of a series that are read now, by their start in Unix milliseconds.
type readPieces struct {
	by   map[int64]*piece
	lost bool // rows came that belong to none: nothing is kept
}

// knownPieces adds to f what is kept, and returns what else the plan has and the pieces of that.
func (s *Store) knownPieces(f *folder, r rollupQuery) (rest rollup.Plan, missing *readPieces) {
	missing = &readPieces{by: piecesOf(r)}
	if missing.by == nil {
		return r.plan, missing
	}
	rest.Buckets = map[rollup.Level][]rollup.Bucket{}
	for start, p := range missing.by {
		if kept, ok := s.pieces.GetIfPresent(p.key); ok {
			for i := range kept.rows {
				f.addCounters(&kept.rows[i])
			}
			delete(missing.by, start)
			continue
		}
		for l, buckets := range p.buckets {
			rest.Buckets[l] = append(rest.Buckets[l], buckets...)
		}
	}
	return rest, missing
}

// add adds a row to its piece. A piece with too many rows is not kept.
func (ps *readPieces) add(row pieceRow) {
	p := ps.by[row.key.Bucket.UnixMilli()]
	switch {
	case p == nil:
		ps.lost = true
	case len(p.rows) > mostPiece:
	default:
		p.rows = append(p.rows, row)
	}
}

// keepPieces keeps pieces that are complete.
func (s *Store) keepPieces(ps *readPieces) {
	if ps.lost {
		return
	}
	for _, p := range ps.by {
		if len(p.rows) <= mostPiece {
			p.buckets, p.rows = nil, slices.Clip(p.rows)
			s.pieces.Set(p.key, p)
		}
	}
}
