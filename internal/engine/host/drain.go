package host

import (
	"context"
	"log/slog"
	"time"

	"github.com/retrylens/retrylens/internal/engine/datadir"
)

// grace is how long queries may go on after the engine was told to stop.
const grace = 2 * time.Second

// drain lets running queries end, and cancels those that do not: the library waits
// 5 s for them and then ends the process on the spot.
func drain(d datadir.Dir, httpAddr string, log *slog.Logger) {
	pw, err := d.Passwords()
	if err != nil {
		log.Warn("cannot cancel queries", "err", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if awaitQuiet(ctx, httpAddr, pw.User) {
		return
	}
	ctx, cancel = context.WithTimeout(context.Background(), grace)
	defer cancel()
	log.Info("cancelling the queries that still run", "grace", grace)
	if _, err := query(ctx, httpAddr, pw.User, "KILL QUERY WHERE query_id != queryID() ASYNC"); err != nil {
		log.Warn("cannot cancel queries", "err", err)
		return
	}
	awaitQuiet(ctx, httpAddr, pw.User)
}

// awaitQuiet waits until no query runs, and tells whether that came to be.
func awaitQuiet(ctx context.Context, httpAddr, password string) bool {
	for {
		n, err := query(ctx, httpAddr, password, "SELECT count() FROM system.processes WHERE query_id != queryID()")
		if err != nil || n == "0" {
			return err == nil
		}
		if datadir.Pause(ctx) != nil {
			return false
		}
	}
}
