package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"

	"github.com/retrylens/retrylens/internal/clickhouse"
)

// Whatever kind of error quotes a record: what is logged of it does not, and tells
// what is known otherwise.
func TestDescribeQuotesNoRecord(t *testing.T) {
	const secret = "op-secret-7"
	quoting := func(err error) []error {
		return []error{err, fmt.Errorf("row %s: %w", secret, err), errors.Join(errors.New(secret), err), fmt.Errorf("%w any more: %s: %w", clickhouse.ErrUnreachable, secret, err)}
	}
	for want, err := range map[string]error{
		"code 469":                     &driver.Exception{Code: 469, Message: "Constraint c is violated. Column values: logical_id = '" + secret + "'"},
		"code 27":                      &driver.Exception{Code: 279, Message: secret, Nested: []driver.Exception{{Code: 27, Message: secret}}},
		"code 4711":                    fmt.Errorf("[HTTP 500] response body: \"Code: 4711. DB::Exception: %s\"", secret),
		"HTTP status 502":              &driver.HTTPError{StatusCode: 502, Err: errors.New(secret)},
		"a value cannot be encoded":    &column.ColumnConverterError{Op: "Append", To: "UInt8", From: "string", Hint: secret},
		"no answer in time":            fmt.Errorf("%w: %s", context.DeadlineExceeded, secret),
		"dial tcp: connection refused": &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED},
		"the connection ended":         io.EOF,
		"the store cannot be reached":  fmt.Errorf("%w: %s", clickhouse.ErrUnreachable, secret),
		"":                             errors.New(secret),
	} {
		for _, e := range quoting(err)[:3] {
			if got := clickhouse.Describe(e); got != want {
				t.Errorf("%v: %q, want %q", e, got, want)
			}
		}
		for _, e := range quoting(err) {
			if got := clickhouse.Describe(e); strings.Contains(got, secret) {
				t.Errorf("%v: %q quotes the record", e, got)
			}
		}
	}
}
