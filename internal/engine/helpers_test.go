package engine_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/retrylens/retrylens/internal/engine"
)

func dialer(c *engine.Client) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, _ string) (net.Conn, error) { return c.DialTCP(ctx) }
}

// openerEnv makes this test binary an opener of the directory it names.
const openerEnv = "RETRYLENS_TEST_OPENER"

// opener opens the engine in dir, prints its PID, and stays a client until its
// standard input ends.
func opener(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := engine.Open(ctx, engine.Options{
		Dir:    dir,
		Binary: os.Getenv("RETRYLENS_TEST_BINARY"),
		Linger: time.Second,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ep, err := c.Endpoint(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(ep.PID)
	os.Stdin.Read(make([]byte, 1))
	return 0
}
