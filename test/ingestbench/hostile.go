package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// hostile lets every kind of bad sender loose at once, beside a good one, and
// measures the memory of the service. Every answer must be one that the kind of
// sender may get, and an error must be a problem of RFC 9457.
func (b *bench) hostile(ctx context.Context) (err error) {
	s, err := b.serveWithTokens(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	length := max(4*b.length, minHostile)
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var wg sync.WaitGroup
	seen := &counter{n: map[string]map[string]int{}}
	attacks := s.attacks()
	for name, attack := range attacks {
		for range attack.senders {
			wg.Go(func() {
				for ctx.Err() == nil {
					if answer := attack.once(ctx); ctx.Err() == nil {
						seen.add(name, answer)
					}
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
	fmt.Printf("Hostile senders at once for %v, beside a good one (%d records/s acknowledged): RSS at most %d MiB.\n\n| senders | answers |\n|---|---|\n",
		length, int(float64(accepted)/length.Seconds()), rss>>20)
	seen.print()
	fmt.Println()
	if rss > 300<<20 {
		err = fmt.Errorf("RSS %d MiB is above 300", rss>>20)
	}
	if seen.total("202") == 0 {
		err = errors.Join(err, errors.New("no large body was taken"))
	}
	return errors.Join(err, seen.check(attacks))
}

// minHostile is longer than a body that trickles may take.
const minHostile = 45 * time.Second

// attack is a kind of sender: allowed are the answers that it may get, and must is
// one of them that has to come, if it is not empty.
type attack struct {
	senders int
	must    string
	allowed []string
	once    func(context.Context) string
}

func (s *service) attacks() map[string]attack {
	gzipBomb := compress(bytes.Repeat([]byte("x"), 512<<20), "gzip")
	zstdBomb := compress(bytes.Repeat([]byte("x"), 512<<20), "zstd")
	full := fullBody()
	fullGzip := compress(full, "gzip")
	fullZstd := compress(full, "zstd")
	small := encoded("")[0]
	foreign := bytes.ReplaceAll(small, []byte(`"tenant":"acme"`), []byte(`"tenant":"globex"`))
	send := func(body []byte, header ...string) func(context.Context) string {
		return func(ctx context.Context) string { return s.raw(ctx, bytes.NewReader(body), header...) }
	}
	const busy, gone, taken, large = "503 busy", "no answer", "202", "413 too_large"
	return map[string]attack{
		"16 gzip bombs of 512 MiB": {16, large, []string{large, busy, gone}, send(gzipBomb, "Content-Encoding", "gzip")},
		"16 zstd bombs of 512 MiB": {16, large, []string{large, busy, gone}, send(zstdBomb, "Content-Encoding", "zstd")},
		"8 valid bodies of 31 MiB": {8, "", []string{taken, busy, gone}, send(full, "Authorization", "Bearer large")},
		"8 the same as gzip":       {8, "", []string{taken, busy, gone}, send(fullGzip, "Content-Encoding", "gzip", "Authorization", "Bearer large")},
		"8 the same as zstd":       {8, "", []string{taken, busy, gone}, send(fullZstd, "Content-Encoding", "zstd", "Authorization", "Bearer large")},
		"4 bodies of 40 MiB":       {4, large, []string{large, gone}, send(bytes.Repeat([]byte("x"), 40<<20))},
		"4 chunked without end":    {4, large, []string{large, busy, gone}, func(ctx context.Context) string { return s.raw(ctx, endless{}) }},
		"4 wrong media type":       {4, "415 unsupported_media_type", []string{"415 unsupported_media_type"}, send(small, "Content-Type", "text/plain")},
		"4 unknown encoding":       {4, "415 unsupported_media_type", []string{"415 unsupported_media_type"}, send(small, "Content-Encoding", "br")},
		"4 broken gzip":            {4, "400 unreadable", []string{"400 unreadable", busy, gone}, send(small, "Content-Encoding", "gzip")},
		"4 deeply nested JSON":     {4, "400 no_good_line", []string{"400 no_good_line", busy, gone}, send(bytes.Repeat([]byte("["), 1<<20), "Content-Type", "application/json")},
		"4 bad token":              {4, "401 unauthorized", []string{"401 unauthorized"}, send(small, "Authorization", "Bearer wrong")},
		"4 no token":               {4, "401 unauthorized", []string{"401 unauthorized"}, send(small, "Authorization", "")},
		"4 foreign tenant":         {4, "403 foreign_tenant", []string{"403 foreign_tenant", busy}, send(foreign)},
		"32 bodies that trickle":   {32, "408 too_slow", []string{"408 too_slow", busy, gone}, s.trickle},
	}
}

// fullBody is 31 MiB of valid records in less than 50,000 lines.
func fullBody() []byte {
	const size = 31 << 20
	b := make([]byte, 0, size)
	for i, all := 0, attempts(49_000); i < len(all); i++ {
		all[i].Attributes = map[string]string{"note": strings.Repeat("n", 180)}
		line := append(all[i].AppendJSON(nil), '\n')
		if len(b)+len(line) > size {
			break
		}
		b = append(b, line...)
	}
	return b
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// raw sends a body and tells what the answer was: its status and, of an error, the
// code of its problem.
func (s *service) raw(ctx context.Context, body io.Reader, header ...string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/attempts", body)
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("Authorization", "Bearer hostile")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return "no answer"
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return "no answer"
	case resp.StatusCode < 400:
		return strconv.Itoa(resp.StatusCode)
	}
	var problem struct {
		Title, Code string
		Status      int
	}
	media := resp.Header.Get("Content-Type")
	if json.Unmarshal(text, &problem) != nil || media != "application/problem+json" || problem.Status != resp.StatusCode || problem.Title == "" {
		return fmt.Sprintf("%d which is no problem: %s %.60q", resp.StatusCode, media, text)
	}
	return fmt.Sprint(resp.StatusCode, " ", problem.Code)
}

func (s *service) trickle(ctx context.Context) string {
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

// counter counts answers by kind of sender.
type counter struct {
	mu sync.Mutex
	n  map[string]map[string]int
}

func (c *counter) add(name, answer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n[name] == nil {
		c.n[name] = map[string]int{}
	}
	c.n[name][answer]++
}

// total is how often an answer came, whoever had sent.
func (c *counter) total(answer string) (n int) {
	for _, by := range c.n {
		n += by[answer]
	}
	return n
}

func (c *counter) print() {
	for _, name := range slices.Sorted(maps.Keys(c.n)) {
		var answers []string
		for _, a := range slices.Sorted(maps.Keys(c.n[name])) {
			answers = append(answers, fmt.Sprintf("%s: %d", a, c.n[name][a]))
		}
		fmt.Printf("| %s | %s |\n", name, strings.Join(answers, ", "))
	}
}

// check tells of answers that a kind of sender may not get, or did not.
func (c *counter) check(attacks map[string]attack) (err error) {
	for name, a := range attacks {
		if a.must != "" && c.n[name][a.must] == 0 {
			err = errors.Join(err, fmt.Errorf("%s: no %s among %v", name, a.must, c.n[name]))
		}
		for answer := range c.n[name] {
			if !slices.Contains(a.allowed, answer) {
				err = errors.Join(err, fmt.Errorf("%s: answered with %s", name, answer))
			}
		}
	}
	return err
}
