package ingest

import (
	"context"

	"github.com/retrylens/retrylens"
)

// Sink stores attempts. Write returns nil only when the whole batch is durable.
// It is idempotent: a batch, or part of it, may come again and replaces what it
// brought before. Records are normalized and valid. The batch, its attribute maps
// excepted, belongs to Write only until it returns. Calls do not overlap. An error
// that has a method RefusedRow() int names the record of the batch, from 0, for which
// the store says that it refused the others, too; it may be wrong.
type Sink interface {
	Write(ctx context.Context, batch []retrylens.Attempt) error
}
