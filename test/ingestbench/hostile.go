package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// hostile lets every kind of bad sender loose at once, beside a good one, and
// measures the memory of the service.
func (b *bench) hostile(ctx context.Context) (err error) {
	s, err := b.serve(ctx, b.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	ctx, cancel := context.WithTimeout(ctx, 2*b.length)
	defer cancel()
	var wg sync.WaitGroup
	statuses := counter{n: map[string]map[int]int{}}
	for name, attack := range s.attacks() {
		for range attack.senders {
			wg.Go(func() {
				for ctx.Err() == nil {
					statuses.add(name, attack.once(ctx))
				}
			})
		}
	}
	for range 300 { // connections that never finish their head
		wg.Go(func() { s.loris(ctx) })
	}
	good := encoded("")
	var accepted int
	for i := 0; ctx.Err() == nil; i++ {
		if n, err := s.post(ctx, good[i%len(good)], ""); err == nil {
			accepted += n
		}
	}
	wg.Wait()
	rss := s.highestRSS()
	fmt.Printf("Hostile senders at once for %v, beside a good one (%d records/s acknowledged): RSS at most %d MiB.\n\n| senders | answers by status |\n|---|---|\n",
		2*b.length, int(float64(accepted)/(2*b.length).Seconds()), rss>>20)
	statuses.print()
	fmt.Println()
	if rss > 300<<20 {
		return fmt.Errorf("RSS %d MiB is above 300", rss>>20)
	}
	return nil
}

type attack struct {
	senders int
	once    func(context.Context) int
}

func (s *service) attacks() map[string]attack {
	gzipBomb := compress(bytes.Repeat([]byte("x"), 512<<20), "gzip")
	zstdBomb := compress(bytes.Repeat([]byte("x"), 512<<20), "zstd")
	large := bytes.Join(encoded("")[:50], nil)
	full := bytes.Repeat(large, 1+(31<<20)/len(large))[:31<<20]
	fullGzip := compress(full, "gzip")
	fullZstd := compress(full, "zstd")
	send := func(body []byte, header ...string) func(context.Context) int {
		return func(ctx context.Context) int { return s.raw(ctx, bytes.NewReader(body), header...) }
	}
	return map[string]attack{
		"16 gzip bombs of 512 MiB": {16, send(gzipBomb, "Content-Encoding", "gzip")},
		"16 zstd bombs of 512 MiB": {16, send(zstdBomb, "Content-Encoding", "zstd")},
		"8 valid bodies of 31 MiB": {8, send(full)},
		"8 the same as gzip":       {8, send(fullGzip, "Content-Encoding", "gzip")},
		"8 the same as zstd":       {8, send(fullZstd, "Content-Encoding", "zstd")},
		"4 bodies of 40 MiB":       {4, send(bytes.Repeat([]byte("x"), 40<<20))},
		"4 chunked without end":    {4, func(ctx context.Context) int { return s.raw(ctx, endless{}) }},
		"4 wrong media type":       {4, send(large, "Content-Type", "text/plain")},
		"4 deeply nested JSON":     {4, send(bytes.Repeat([]byte("["), 1<<20), "Content-Type", "application/json")},
		"32 bodies that trickle":   {32, s.trickle},
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func (s *service) raw(ctx context.Context, body io.Reader, header ...string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/attempts", body)
	if err != nil {
		return -1
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func (s *service) trickle(ctx context.Context) int {
	r, w := io.Pipe()
	go func() {
		for ctx.Err() == nil {
			if _, err := w.Write([]byte(" ")); err != nil {
				return
			}
			pause(ctx, 200*time.Millisecond)
		}
		w.CloseWithError(ctx.Err())
	}()
	defer r.Close()
	return s.raw(ctx, r)
}

// loris opens a connection and sends its head byte by byte.
func (s *service) loris(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			pause(ctx, time.Second)
			continue
		}
		for _, c := range []byte("POST /v1/attempts HTTP/1.1\r\nX-Slow: " + strings.Repeat("x", 1000)) {
			if _, err := conn.Write([]byte{c}); err != nil || ctx.Err() != nil {
				break
			}
			pause(ctx, 100*time.Millisecond)
		}
		conn.Close()
	}
}

// counter counts answers; 0 is a connection that ended without one.
type counter struct {
	mu sync.Mutex
	n  map[string]map[int]int
}

func (c *counter) add(name string, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n[name] == nil {
		c.n[name] = map[int]int{}
	}
	c.n[name][status]++
}

func (c *counter) print() {
	for name, by := range c.n {
		fmt.Printf("| %s | %v |\n", name, by)
	}
}
