package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

const (
	senders = 6
	token   = "chaos"
)

// crowd is all senders. Each sends a body until it is acknowledged.
type crowd struct {
	w      *world
	resent atomic.Int64
	full   atomic.Int64
	stop   atomic.Bool

	mu           sync.Mutex
	acknowledged []retrylens.Attempt
	failed       error
}

// run sends until stop is set; then each finishes the body that it is at.
func (c *crowd) run(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			s := &sender{c: c, number: i, rand: rand.New(rand.NewPCG(c.w.o.seed, uint64(100+i)))}
			if err := s.run(ctx); err != nil {
				c.mu.Lock()
				c.failed = err
				c.mu.Unlock()
			}
		})
	}
	wg.Wait()
}

type sender struct {
	c      *crowd
	number int
	rand   *rand.Rand
	block  int
	left   []retrylens.Attempt
	client http.Client
}

func (s *sender) run(ctx context.Context) error {
	s.client.Timeout = 8 * time.Second
	for !s.c.stop.Load() {
		batch := s.next(20 + s.rand.IntN(180))
		if err := s.deliver(ctx, batch); err != nil {
			return err
		}
		s.c.mu.Lock()
		s.c.acknowledged = append(s.c.acknowledged, batch...)
		s.c.mu.Unlock()
		pause(ctx, time.Duration(50+s.rand.IntN(100))*time.Millisecond)
	}
	return nil
}

// next takes records of histories of the sender's own: repeats, revisions,
// conflicts among them.
func (s *sender) next(n int) []retrylens.Attempt {
	if len(s.left) < n {
		s.left = append(s.left, s.histories()...)
	}
	batch := s.left[:n]
	s.left = s.left[n:]
	return batch
}

// histories lie at most two days back, whenever the test runs.
func (s *sender) histories() []retrylens.Attempt {
	s.block++
	shift := time.Now().UTC().Truncate(24 * time.Hour).Add(-24 * time.Hour).Sub(histories.Base)
	all := histories.Generate(s.c.w.o.seed<<16+uint64(s.number)<<12+uint64(s.block), 1000)
	name := fmt.Sprintf("s%d-%d-", s.number, s.block)
	for i := range all {
		a := &all[i]
		a.LogicalID = name + a.LogicalID
		a.StartedAt, a.OperationStartedAt = a.StartedAt.Add(shift), a.OperationStartedAt.Add(shift)
		if a.Emitter != "" {
			a.Emitter = name + a.Emitter
		}
	}
	return all
}

// deliver sends a body, to any node, until all of it is acknowledged.
func (s *sender) deliver(ctx context.Context, batch []retrylens.Attempt) error {
	body, header := s.encode(batch)
	for try := 0; ; try++ {
		if try > 0 {
			s.c.resent.Add(1)
			pause(ctx, time.Duration(100+s.rand.IntN(300))*time.Millisecond)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		done, err := s.post(ctx, body, header, len(batch))
		if done || err != nil {
			return err
		}
	}
}

func (s *sender) encode(batch []retrylens.Attempt) ([]byte, http.Header) {
	var b bytes.Buffer
	h := http.Header{"Content-Type": {"application/x-ndjson"}, "Authorization": {"Bearer " + token}}
	var w io.WriteCloser
	switch s.rand.IntN(4) {
	case 0:
		h.Set("Content-Encoding", "gzip")
		w = gzip.NewWriter(&b)
	case 1:
		h.Set("Content-Encoding", "zstd")
		w, _ = zstd.NewWriter(&b)
	case 2:
		h.Set("Content-Type", "application/json")
		_ = json.NewEncoder(&b).Encode(batch)
		return b.Bytes(), h
	}
	var text []byte
	for i := range batch {
		text = append(batch[i].AppendJSON(text), '\n')
	}
	if w == nil {
		return text, h
	}
	_, _ = w.Write(text)
	_ = w.Close()
	return b.Bytes(), h
}

// post is one try. An answer that refuses records is an error: they are all
// good.
func (s *sender) post(ctx context.Context, body []byte, header http.Header, n int) (bool, error) {
	node := s.c.w.nodes[s.rand.IntN(len(s.c.w.nodes))]
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+node.addr+"/v1/attempts", bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header = header.Clone()
	resp, err := s.client.Do(req)
	if err != nil {
		return false, nil //nolint:nilerr // a node that is away: again
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return false, nil //nolint:nilerr // the answer got lost: again
	}
	var answer struct {
		Accepted int
		Code     string
	}
	_ = json.Unmarshal(text, &answer)
	switch {
	case resp.StatusCode == http.StatusAccepted && answer.Accepted == n:
		return true, nil
	case resp.StatusCode == http.StatusServiceUnavailable:
		if answer.Code == "spool_full" {
			s.c.full.Add(1)
		}
		return false, nil
	}
	return false, fmt.Errorf("%d records were answered with %d %.300s", n, resp.StatusCode, text)
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
