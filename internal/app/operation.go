package app

import (
	"context"
	"errors"
	"fmt"
	"github.com/retrylens/retrylens/internal/format"
	"os"
	"time"

	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
	"github.com/retrylens/retrylens/internal/render"
)

// ErrUnknownOperation is returned for a logical id of which there is no record.
var ErrUnknownOperation = errors.New("no such operation")

// OperationOptions say which operation is shown.
type OperationOptions struct {
	Store     StoreOptions
	LogicalID string
	Tenants   []string // none = of every tenant
	Format    string   // text or json; "" = text
	AsOf      string   // see query.ParseTime; "" = now
	Streams   Streams
	Now       func() time.Time    // nil = time.Now
	Getenv    func(string) string // nil = os.Getenv
}

// OperationFormats are the formats of one operation.
var OperationFormats = []string{"text", "json"}

// ShowOperation writes the attempts of an operation and its verdict.
func ShowOperation(ctx context.Context, o OperationOptions) (err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Format != "" && o.Format != "text" && o.Format != "json" {
		return usagef("--output must be text or json, got %.40q", o.Format)
	}
	asOf := o.Now().UTC().Truncate(time.Millisecond)
	if o.AsOf != "" {
		if asOf, err = query.ParseTime(o.AsOf, asOf); err != nil {
			return usagef("--as-of: %w", err)
		}
	}
	store, err := openReadable(ctx, o.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return o.show(ctx, store, asOf)
}

func (o OperationOptions) show(ctx context.Context, store *Store, asOf time.Time) error {
	attempts, err := store.Attempts(ctx, o.LogicalID, o.Tenants...)
	if err != nil {
		return err
	}
	if len(attempts) == 0 {
		return o.unknown(store)
	}
	ops := metrics.Operations(attempts, asOf)
	if o.Format == "json" {
		return metrics.OperationsJSON(o.Streams.Out, ops, asOf)
	}
	return render.Waterfall(o.Streams.Out, ops, screen(o.Streams.Out, o.Getenv))
}

func (o OperationOptions) unknown(store *Store) error {
	hint := "logical_id is matched exactly, upper and lower case differ"
	if len(o.Tenants) > 0 {
		hint += "; try without --tenant"
	}
	return fmt.Errorf("%w: %s has no attempt with logical_id %s (%s)", ErrUnknownOperation, store.Address, format.Safe(o.LogicalID), hint)
}
