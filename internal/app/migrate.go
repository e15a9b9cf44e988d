package app

import (
	"context"
	"errors"
	"fmt"
)

// MigrateOptions say which store is migrated.
type MigrateOptions struct {
	Store   StoreOptions
	Streams Streams
}

// Migrate brings the schema of a store up to date and names the migrations on
// Streams.Out, a line each.
func Migrate(ctx context.Context, o MigrateOptions) (err error) {
	store, err := OpenStore(ctx, o.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	done, err := store.Migrate(ctx)
	for _, name := range done {
		fmt.Fprintln(o.Streams.Out, name)
	}
	if err != nil {
		return err
	}
	if len(done) == 0 {
		fmt.Fprintf(o.Streams.Err, "%s: the schema is up to date\n", store.Address)
		return nil
	}
	fmt.Fprintf(o.Streams.Err, "%s: applied %d migrations\n", store.Address, len(done))
	return nil
}
