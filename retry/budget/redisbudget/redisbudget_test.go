package redisbudget_test

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/retrylens/retrylens/retry/budget"
	"github.com/retrylens/retrylens/retry/budget/redisbudget"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a real redis-server of this test.
type server struct {
	addr string
	cmd  *exec.Cmd
}

// startServer starts one on a free port and waits until it answers.
func startServer(t *testing.T) *server {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("this test needs redis-server: apt-get install redis-server")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	_ = l.Close()
	s := &server{addr: addr, cmd: exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	s.await(t)
	return s
}

func (s *server) await(t *testing.T) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: 100, MinRetryBackoff: 10 * time.Millisecond, MaxRetryBackoff: 50 * time.Millisecond})
	defer c.Close()
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatalf("redis-server does not answer: %v", err)
	}
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func client(t *testing.T, s *server) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func newBudget(t *testing.T, o redisbudget.Options) *redisbudget.Budget {
	t.Helper()
	if o.Provider == "" {
		o.Provider = "openai"
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second // the machine is busy; only the script is under test
	}
	b, err := redisbudget.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFleetSharesOneBucket(t *testing.T) {
	s := startServer(t)
	const services = 10
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range services {
		b := newBudget(t, redisbudget.Options{Client: client(t, s)})
		for range 10 {
			wg.Go(func() {
				for range 10 {
					if b.Take(t.Context()) {
						taken.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	if taken.Load() != 100 {
		t.Errorf("ten services of ten callers took %d tokens, want 100", taken.Load())
	}
}

func TestSuccessesFill(t *testing.T) {
	s := startServer(t)
	c := client(t, s)
	a, b := newBudget(t, redisbudget.Options{Client: c, Bucket: budget.Options{Tokens: 1, PerSuccess: 0.1}}),
		newBudget(t, redisbudget.Options{Client: c, Bucket: budget.Options{Tokens: 1, PerSuccess: 0.1}})
	ctx := t.Context()
	if !a.Take(ctx) || b.Take(ctx) {
		t.Fatal("want one token for both")
	}
	for range 9 {
		a.Success(ctx)
	}
	if a.Take(ctx) {
		t.Error("a token for nine successes")
	}
	b.Success(ctx)
	if !b.Take(ctx) {
		t.Error("the tenth success, in another process, makes a token")
	}
	a.Return(ctx)
	if err := a.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		a.Success(ctx)
	}
	if err := a.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if !b.Take(ctx) || b.Take(ctx) {
		t.Error("a returned token is there, and a bucket holds no more than its size")
	}
	key := "retrylens:retry_budget:openai"
	if got := c.Get(ctx, key).Val(); got != "0" {
		t.Errorf("%s = %q", key, got)
	}
	if ttl := c.PTTL(ctx, key).Val(); ttl < 23*time.Hour || ttl > 24*time.Hour {
		t.Errorf("ttl %v", ttl)
	}
}

func TestPrefixAndProviders(t *testing.T) {
	s := startServer(t)
	c := client(t, s)
	one := budget.Options{Tokens: 1}
	a := newBudget(t, redisbudget.Options{Client: c, Prefix: "x:", Bucket: one})
	b := newBudget(t, redisbudget.Options{Client: c, Prefix: "x:", Bucket: one, Provider: "anthropic"})
	if !a.Take(t.Context()) || !b.Take(t.Context()) {
		t.Error("each provider has a bucket")
	}
	if n := c.Exists(t.Context(), "x:openai", "x:anthropic").Val(); n != 2 {
		t.Errorf("%d keys", n)
	}
}

func TestRedisGone(t *testing.T) {
	s := startServer(t)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var failures int
	make := func(on redisbudget.OnError) *redisbudget.Budget {
		return newBudget(t, redisbudget.Options{
			Client: client(t, s), OnError: on, Bucket: budget.Options{Tokens: 20, PerSuccess: 0.1},
			Now: func() time.Time { return now }, OnFailure: func(error) { failures++ },
		})
	}
	local, open, closed := make(redisbudget.Local), make(redisbudget.Open), make(redisbudget.Closed)
	s.stop()
	ctx := t.Context()
	took := 0
	for local.Take(ctx) {
		took++
	}
	if took != 2 {
		t.Errorf("local: took %d, want a tenth of the fleet's tokens", took)
	}
	if failures != 1 {
		t.Errorf("asked %d times within the cooldown, want once", failures)
	}
	for range 10 {
		local.Success(ctx)
	}
	if !local.Take(ctx) {
		t.Error("local: successes fill the fallback")
	}
	if !open.Take(ctx) || closed.Take(ctx) {
		t.Error("open lets go, closed does not")
	}
	if err := local.Flush(ctx); err == nil {
		t.Error("Flush must tell that Redis is gone")
	}

	again := exec.Command(s.cmd.Path, s.cmd.Args[1:]...)
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	s.cmd = again
	s.await(t)
	now = now.Add(time.Second)
	if err := local.Flush(ctx); err != nil || !closed.Take(ctx) {
		t.Errorf("after the cooldown Redis is asked again: %v", err)
	}
}

func TestHungRedisDoesNotBlock(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := client(t, &server{addr: l.Addr().String()})
	b := newBudget(t, redisbudget.Options{Client: c, Timeout: 20 * time.Millisecond, OnError: redisbudget.Closed})
	before := time.Now()
	if took := b.Take(t.Context()); took || time.Since(before) > 2*time.Second {
		t.Errorf("took %t after %v, want a no after 20 ms", took, time.Since(before))
	}
}

func TestOptions(t *testing.T) {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true})
	defer c.Close()
	plain := redis.NewClient(&redis.Options{})
	defer plain.Close()
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{})
	defer cluster.Close()
	for _, deaf := range []redis.Scripter{plain, ring, cluster} {
		if _, err := redisbudget.New(redisbudget.Options{Client: deaf, Provider: "x"}); err == nil || !strings.Contains(err.Error(), "ContextTimeoutEnabled") {
			t.Errorf("%T: %v", deaf, err)
		}
	}
	for want, o := range map[string]redisbudget.Options{
		"Options.Client":          {Provider: "x"},
		"Options.Provider":        {Client: c},
		"Options.OnError":         {Client: c, Provider: "x", OnError: "maybe"},
		"Options.Timeout":         {Client: c, Provider: "x", Timeout: -1},
		"Options.TTL":             {Client: c, Provider: "x", TTL: 1},
		"Options.Bucket.tokens":   {Client: c, Provider: "x", Bucket: budget.Options{Tokens: -1}},
		"Options.Fallback.tokens": {Client: c, Provider: "x", Fallback: budget.Options{Tokens: -1}},
	} {
		if _, err := redisbudget.New(o); err == nil || !strings.Contains(err.Error(), want+" ") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func Example() {
	c := redis.NewClient(&redis.Options{Addr: "redis.internal:6379", MaxRetries: -1, ContextTimeoutEnabled: true})
	defer c.Close()
	b, err := redisbudget.New(redisbudget.Options{
		Client:   c,
		Provider: "openai",
		Bucket:   budget.Options{Tokens: 100, PerSuccess: 0.1}, // of the whole fleet
		OnError:  redisbudget.Local,
	})
	fmt.Println(b != nil, err)
	// Output: true <nil>
}
