package clickhouse_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

// Which row the server refuses is told by its place in the batch, of several days too.
func TestTheRefusedRowIsNamed(t *testing.T) {
	s := newStore(t)
	if err := s.Exec(t.Context(), "ALTER TABLE "+s.Database()+".attempts ADD CONSTRAINT no_bad CHECK service != 'is violated at row 3.'"); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []int{0, 1, 298, 299} {
		var batch []retrylens.Attempt
		for i := range 300 {
			a := one(fmt.Sprint("op-", i), histories.Base.Add(time.Duration(i%3)*24*time.Hour), retrylens.OutcomeSuccess)
			if i == bad {
				a.Service = "is violated at row 3."
			}
			batch = append(batch, a)
		}
		err := s.Write(t.Context(), batch)
		var named interface{ RefusedRow() int }
		if !errors.As(err, &named) || named.RefusedRow() != bad {
			t.Errorf("row %d: %v", bad, err)
		}
		if kind := clickhouse.Classify(err); kind != clickhouse.KindData {
			t.Errorf("row %d: %s", bad, kind)
		}
		var exception *driver.Exception
		if got := clickhouse.Describe(err); got != "code 469" || !errors.As(err, &exception) {
			t.Errorf("row %d: described as %q", bad, got)
		}
	}
}
