package effects_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	_ "modernc.org/sqlite" // or github.com/jackc/pgx/v5/stdlib

	"github.com/retrylens/retrylens/retry/effects"
	"github.com/retrylens/retrylens/retry/emit"
	"github.com/retrylens/retrylens/retry/keys"
)

// open makes an application's database with the tables of this package and one of its own.
func open() (*sql.DB, *effects.Store) {
	db, err := sql.Open("sqlite", "file::memory:?_txlock=immediate")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1) // a database in memory is one connection's
	if err := effects.Migrate(context.Background(), db, effects.SQLite); err != nil {
		panic(err)
	}
	if _, err := db.Exec("CREATE TABLE invoices (number text)"); err != nil {
		panic(err)
	}
	store, err := effects.New(effects.Options{DB: db, Dialect: effects.SQLite})
	if err != nil {
		panic(err)
	}
	return db, store
}

// transfer is a tool whose receiver knows what it has done.
func transfer() effects.Tool {
	done := map[string]bool{}
	return effects.Tool{
		Name:  "transfer",
		Retry: effects.AfterLookup,
		Call: func(_ context.Context, c effects.Call) ([]byte, error) {
			done[c.Key] = true
			fmt.Printf("transferred %s\n", c.Args)
			return []byte("receipt"), nil
		},
		Lookup: func(_ context.Context, c effects.Call) (effects.Finding, error) {
			if done[c.Key] {
				return effects.Finding{Outcome: effects.Happened, Result: []byte("receipt")}, nil
			}
			return effects.Finding{Outcome: effects.DidNotHappen}, nil
		},
	}
}

// One payment per order, whatever is repeated.
func Example() {
	db, _ := sql.Open("sqlite", "file::memory:")
	defer db.Close()
	db.SetMaxOpenConns(1)
	_ = effects.Migrate(context.Background(), db, effects.SQLite)
	records, _ := emit.New(emit.Options{Sink: emit.Writer(os.Stderr), Tenant: "acme"})
	defer records.Close(context.Background())

	store, _ := effects.New(effects.Options{DB: db, Dialect: effects.SQLite, Records: records})
	for range 3 {
		res, err := store.Do(context.Background(), transfer(), keys.Derive("pay", "order 42"), []byte(`{"eur":5}`))
		fmt.Println(string(res.Value), res.Replayed, err)
	}
	// Output:
	// transferred {"eur":5}
	// receipt false <nil>
	// receipt true <nil>
	// receipt true <nil>
}

func ExampleNew() {
	_, err := effects.New(effects.Options{Dialect: effects.PostgreSQL})
	fmt.Println(err)
	// Output: effects: Options.DB is missing
}

// With the service's own migrations instead: see Schema.
func ExampleMigrate() {
	db, _ := sql.Open("sqlite", "file::memory:")
	defer db.Close()
	db.SetMaxOpenConns(1)
	fmt.Println(effects.Migrate(context.Background(), db, effects.SQLite), effects.Migrate(context.Background(), db, effects.SQLite))
	// Output: <nil> <nil>
}

func ExampleSchema() {
	fmt.Println(strings.Count(effects.Schema(effects.PostgreSQL), "CREATE TABLE"), "tables")
	// Output: 3 tables
}

// A queue that delivers twice writes one invoice.
func ExampleStore_Once() {
	db, store := open()
	defer db.Close()
	deliver := func() (res effects.Result, err error) {
		tx, err := db.Begin()
		if err != nil {
			return res, err
		}
		defer tx.Rollback()
		res, err = store.Once(context.Background(), tx, "message 7", []byte(`{"customer":1}`), effects.InTransaction, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			_, err := tx.ExecContext(ctx, "INSERT INTO invoices VALUES ('2026-11')")
			return []byte("2026-11"), err
		})
		if err != nil {
			return res, err
		}
		return res, tx.Commit()
	}
	for range 2 {
		res, err := deliver()
		fmt.Println(string(res.Value), res.Replayed, err)
	}
	// Output:
	// 2026-11 false <nil>
	// 2026-11 true <nil>
}

// The mail exists exactly if the invoice does.
func ExampleStore_Enqueue() {
	db, store := open()
	defer db.Close()
	for range 2 {
		tx, _ := db.Begin()
		_, _ = tx.Exec("INSERT INTO invoices VALUES ('2026-11')")
		enqueued, err := store.Enqueue(context.Background(), tx, effects.Message{Key: keys.Derive("mail", "2026-11"), Topic: "mail", Payload: []byte("your invoice")})
		fmt.Println(enqueued, err, tx.Commit())
	}
	// Output:
	// true <nil> <nil>
	// false <nil> <nil>
}

func enqueue(db *sql.DB, store *effects.Store, key string) {
	tx, err := db.Begin()
	if err == nil {
		_, err = store.Enqueue(context.Background(), tx, effects.Message{Key: key, Topic: "mail", Payload: []byte("your invoice")})
	}
	if err = errors.Join(err, tx.Commit()); err != nil {
		panic(err)
	}
}

func ExampleStore_Drain() {
	db, store := open()
	defer db.Close()
	enqueue(db, store, "mail 1")
	drained, err := store.Drain(context.Background(), effects.DrainOptions{Handlers: map[string]effects.Handler{
		"mail": {Retry: effects.Keyed, Dispatch: func(_ context.Context, m effects.Message) error {
			fmt.Printf("%s, Idempotency-Key: %s\n", m.Payload, m.Key)
			return nil
		}},
	}})
	fmt.Println(drained.Dispatched, err)
	// Output:
	// your invoice, Idempotency-Key: mail 1
	// 1 <nil>
}

// bounce sets all mail aside.
func bounce(store *effects.Store) error {
	_, err := store.Drain(context.Background(), effects.DrainOptions{Handlers: map[string]effects.Handler{
		"mail": {Retry: effects.Keyed, Dispatch: func(context.Context, effects.Message) error {
			return effects.Poison(errors.New("no such address"))
		}},
	}})
	return err
}

func ExamplePoison() {
	db, store := open()
	defer db.Close()
	enqueue(db, store, "mail 1")
	fmt.Println(bounce(store))
	stats, _ := store.Stats(context.Background())
	fmt.Println(stats.SetAside, "set aside")
	// Output:
	// <nil>
	// 1 set aside
}

func ExampleStore_SetAside() {
	db, store := open()
	defer db.Close()
	enqueue(db, store, "mail 1")
	_ = bounce(store)
	aside, _ := store.SetAside(context.Background(), 100)
	for _, m := range aside {
		fmt.Println(m.Key, "after", m.Attempt, "attempt:", m.LastError)
	}
	// Output: mail 1 after 1 attempt: no such address
}

func ExampleStore_Requeue() {
	db, store := open()
	defer db.Close()
	enqueue(db, store, "mail 1")
	_ = bounce(store)
	fmt.Println(store.Requeue(context.Background(), "mail 1"))
	stats, _ := store.Stats(context.Background())
	fmt.Println(stats.Ready, "ready")
	// Output:
	// <nil>
	// 1 ready
}

// A call whose answer was lost is looked up, not made again.
func ExampleStore_Do() {
	db, store := open()
	defer db.Close()
	tool := transfer()
	lossy := tool
	lossy.Call = func(ctx context.Context, c effects.Call) ([]byte, error) {
		_, _ = tool.Call(ctx, c)
		return nil, errors.New("connection reset")
	}
	_, err := store.Do(context.Background(), lossy, "order 42", []byte(`{"eur":5}`))
	fmt.Println(errors.Is(err, effects.ErrUnknown))
	res, err := store.Do(context.Background(), tool, "order 42", []byte(`{"eur":5}`))
	fmt.Println(string(res.Value), res.Replayed, err)
	// Output:
	// transferred {"eur":5}
	// true
	// receipt true <nil>
}

// A refusal is not a call that may have happened: the key is free again.
func ExampleNotHappened() {
	db, store := open()
	defer db.Close()
	tool := effects.Tool{Name: "print", Retry: effects.Never, Call: func(context.Context, effects.Call) ([]byte, error) {
		return nil, effects.NotHappened(errors.New("out of paper"))
	}}
	for range 2 {
		_, err := store.Do(context.Background(), tool, "label 7", nil)
		fmt.Println(err, errors.Is(err, effects.ErrUnknown))
	}
	// Output:
	// out of paper false
	// out of paper false
}

// lose leaves a call of a tool pending that happened.
func lose(store *effects.Store, tool effects.Tool) {
	call := tool.Call
	tool.Call = func(ctx context.Context, c effects.Call) ([]byte, error) {
		_, _ = call(ctx, c)
		return nil, errors.New("connection reset")
	}
	_, _ = store.Do(context.Background(), tool, "order 42", []byte("5 EUR"))
}

func ExampleStore_Reconcile() {
	db, store := open()
	defer db.Close()
	tool := transfer()
	lose(store, tool)
	found, err := store.Reconcile(context.Background(), effects.ReconcileOptions{Tools: []effects.Tool{tool}})
	fmt.Println(found.Committed, "had happened,", err)
	// Output:
	// transferred 5 EUR
	// 1 had happened, <nil>
}

// label is a tool that nobody can ask.
func label() effects.Tool {
	return effects.Tool{Name: "label", Retry: effects.Never, Call: func(context.Context, effects.Call) ([]byte, error) { return nil, nil }}
}

func ExampleStore_Unresolved() {
	db, store := open()
	defer db.Close()
	lose(store, label())
	_, _ = store.Reconcile(context.Background(), effects.ReconcileOptions{Tools: []effects.Tool{label()}})
	open, _ := store.Unresolved(context.Background(), 100)
	for _, c := range open {
		fmt.Println(c.Tool, c.Key)
	}
	// Output: label order 42
}

func ExampleStore_Settle() {
	db, store := open()
	defer db.Close()
	lose(store, label())
	_, _ = store.Reconcile(context.Background(), effects.ReconcileOptions{Tools: []effects.Tool{label()}})
	fmt.Println(store.Settle(context.Background(), "order 42", effects.Finding{Outcome: effects.Happened, Result: []byte("it is on the parcel")}))
	res, err := store.Do(context.Background(), label(), "order 42", []byte("5 EUR"))
	fmt.Println(string(res.Value), err)
	// Output:
	// <nil>
	// it is on the parcel <nil>
}

// A run stops, and resumes behind the last committed step. The model's answer is a step, so
// it is kept.
func ExampleStore_Run() {
	db, store := open()
	defer db.Close()
	down := true
	steps := []effects.Step{
		{Tool: effects.Tool{Name: "plan", Retry: effects.Repeatable, Call: func(context.Context, effects.Call) ([]byte, error) {
			fmt.Println("asking the model")
			return []byte("book seat 12A"), nil
		}}},
		{
			Tool: effects.Tool{Name: "book", Retry: effects.Keyed, Call: func(_ context.Context, c effects.Call) ([]byte, error) {
				if down {
					return nil, effects.NotHappened(errors.New("connection refused"))
				}
				fmt.Printf("%s under %s…\n", c.Args, c.Key[:8])
				return []byte("booked"), nil
			}},
			Args: func(_ context.Context, results [][]byte) ([]byte, error) { return results[0], nil },
		},
	}
	_, err := store.Run(context.Background(), "ticket 7", steps)
	var stopped *effects.StepError
	fmt.Println(errors.As(err, &stopped), stopped.Step, stopped.Err)
	down = false
	results, err := store.Run(context.Background(), "ticket 7", steps)
	fmt.Println(string(results[1]), err)
	// Output:
	// asking the model
	// true 1 connection refused
	// book seat 12A under b4a32515…
	// booked <nil>
}

func ExampleStore_Stats() {
	db, store := open()
	defer db.Close()
	enqueue(db, store, "mail 1")
	stats, err := store.Stats(context.Background())
	fmt.Println(stats.Ready, stats.SetAside, stats.Pending, stats.Unresolved, err)
	// Output: 1 0 0 0 <nil>
}

func ExampleStore_Prune() {
	db, store := open()
	defer db.Close()
	_, _ = store.Do(context.Background(), transfer(), "order 42", []byte("5 EUR"))
	fmt.Println(store.Prune(context.Background(), 30*24*time.Hour))
	// Output:
	// transferred 5 EUR
	// 0 <nil>
}

// In every process, beside its work.
func ExampleStore_Serve() {
	db, store := open()
	defer db.Close()
	lose(store, transfer())
	ctx, cancel := context.WithCancel(context.Background())
	tool := transfer()
	tool.Lookup = func(context.Context, effects.Call) (effects.Finding, error) {
		cancel() // the example has seen enough
		return effects.Finding{Outcome: effects.Happened}, nil
	}
	err := store.Serve(ctx, effects.ServeOptions{
		Reconcile: &effects.ReconcileOptions{Tools: []effects.Tool{tool}},
		OnError:   func(err error) { fmt.Println(err) },
	})
	stats, _ := store.Stats(context.Background())
	fmt.Println(stats.Committed, err)
	// Output:
	// transferred 5 EUR
	// 1 <nil>
}

// A KeyError says when to ask again.
func ExampleKeyError() {
	db, store := open()
	defer db.Close()
	tool := transfer()
	tool.Call = func(context.Context, effects.Call) ([]byte, error) {
		return nil, errors.New("timeout") // the request may be on its way
	}
	for range 2 {
		_, err := store.Do(context.Background(), tool, "order 42", nil)
		var wait *effects.KeyError
		fmt.Println(errors.As(err, &wait), errors.Is(err, effects.ErrUnknown), wait.After.Round(time.Minute))
	}
	// Output:
	// true true 0s
	// true true 1m0s
}
