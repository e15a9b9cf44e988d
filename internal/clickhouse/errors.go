package clickhouse

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	chcolumn "github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// Kind is what an error of Write means for the batch.
type Kind string

// Kinds of errors.
const (
	KindRetry Kind = "retry" // the store or the way to it: the same batch again, later
	KindData  Kind = "data"  // a row of the batch: never as it is
	KindSplit Kind = "split" // the batch is too much for one insert
	KindFatal Kind = "fatal" // wrong login or schema: later, when somebody has seen to it
)

// Classify tells by code and text what an error of Write means. Codes are those
// of ClickHouse's ErrorCodes.cpp; what is not known may pass, so that nothing is
// given up by mistake.
func Classify(err error) Kind {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return KindRetry
	}
	if code, text, ok := exception(err); ok {
		return classifyCode(code, text)
	}
	var columnErr *chcolumn.Error
	var converter *chcolumn.ColumnConverterError
	var block *proto.BlockError
	if errors.As(err, &columnErr) || errors.As(err, &converter) || errors.As(err, &block) {
		return KindData // the client could not encode a value
	}
	var answer *clickhouse.HTTPError
	if errors.As(err, &answer) {
		switch answer.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
			return KindFatal
		}
	}
	return KindRetry
}

// Describe is what may be logged of an error of Write: the code of an exception, or
// what is wrong with the way to the store. The texts of exceptions may hold values
// of records, as may what a proxy answers; they are left out.
func Describe(err error) string {
	if code, _, ok := exception(err); ok {
		return "code " + strconv.Itoa(code)
	}
	var answer *clickhouse.HTTPError
	var network *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &answer):
		return "HTTP status " + strconv.Itoa(answer.StatusCode)
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, context.Canceled):
		return "stopped"
	case errors.As(err, &certificate):
		return certificate.Error()
	case errors.As(err, &network):
		return network.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended"
	case Classify(err) == KindData:
		return "a value cannot be encoded"
	case errors.Is(err, ErrUnreachable):
		return ErrUnreachable.Error()
	}
	return ""
}

// rowError is an error of Write with the record that the server named as the reason.
type rowError struct {
	error
	row int // of the batch, from 0
}

// RefusedRow is for who stores the batch without it, see ingest.Sink.
func (e *rowError) RefusedRow() int { return e.row }

// Unwrap is the error alone.
func (e *rowError) Unwrap() error { return e.error }

// violatedRow is where the text of a violated constraint tells the row of the block, from
// 1. The values of the row come behind.
var violatedRow = regexp.MustCompile(`is violated at row (\d+)\.`)

// refusedRow is the row of a block, from 0, that the server named; false = none.
func refusedRow(err error) (int, bool) {
	const violatedConstraint = 469
	code, text, ok := exception(err)
	if !ok || code != violatedConstraint {
		return 0, false
	}
	m := violatedRow.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	row, convErr := strconv.Atoi(m[1])
	return row - 1, convErr == nil && row > 0
}

// httpException is how an exception reads in an answer over HTTP.
var httpException = regexp.MustCompile(`Code: (\d+)\. DB::\w*Exception: `)

// exception finds the code and the text of the server's exception. One that
// another server passed on comes inside: the innermost tells.
func exception(err error) (code int, text string, ok bool) {
	var e *clickhouse.Exception
	if errors.As(err, &e) {
		code, text, ok = int(e.Code), e.Message, true
		for n := e.Nested; len(n) > 0; n = n[0].Nested {
			code, text = int(n[0].Code), n[0].Message
		}
		return code, text, ok
	}
	text = err.Error()
	m := httpException.FindStringSubmatch(text)
	if m == nil {
		return 0, "", false
	}
	code, convErr := strconv.Atoi(m[1])
	return code, text, convErr == nil
}

// tooManyParts is the code that means two things.
const tooManyParts = 252

var dataCodes = errorCodes(
	6,   // CANNOT_PARSE_TEXT
	27,  // CANNOT_PARSE_INPUT_ASSERTION_FAILED
	38,  // CANNOT_PARSE_DATE
	41,  // CANNOT_PARSE_DATETIME
	53,  // TYPE_MISMATCH
	69,  // ARGUMENT_OUT_OF_BOUND
	70,  // CANNOT_CONVERT_TYPE
	72,  // CANNOT_PARSE_NUMBER
	117, // INCORRECT_DATA
	131, // TOO_LARGE_STRING_SIZE
	321, // VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
	349, // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
	395, // FUNCTION_THROW_IF_VALUE_IS_NON_ZERO
	407, // DECIMAL_OVERFLOW
	469, // VIOLATED_CONSTRAINT
	691, // UNKNOWN_ELEMENT_OF_ENUM
)

var fatalCodes = errorCodes(
	8,   // THERE_IS_NO_COLUMN
	10,  // NOT_FOUND_COLUMN_IN_BLOCK
	16,  // NO_SUCH_COLUMN_IN_TABLE
	20,  // NUMBER_OF_COLUMNS_DOESNT_MATCH
	47,  // UNKNOWN_IDENTIFIER
	60,  // UNKNOWN_TABLE
	62,  // SYNTAX_ERROR
	81,  // UNKNOWN_DATABASE
	115, // UNKNOWN_SETTING
	164, // READONLY: the user may not write; a table that cannot is 242
	170, // CLUSTER_DOESNT_EXIST
	192, // UNKNOWN_USER
	193, // WRONG_PASSWORD
	194, // REQUIRED_PASSWORD
	195, // IP_ADDRESS_NOT_ALLOWED
	291, // DATABASE_ACCESS_DENIED
	452, // SETTING_CONSTRAINT_VIOLATION
	497, // ACCESS_DENIED
	516, // AUTHENTICATION_FAILED
)

func errorCodes(list ...int) map[int]bool {
	m := make(map[int]bool, len(list))
	for _, c := range list {
		m[c] = true
	}
	return m
}

func classifyCode(code int, text string) Kind {
	switch {
	case code == tooManyParts && strings.Contains(text, "partitions"):
		return KindSplit // Too many partitions for single INSERT block
	case dataCodes[code]:
		return KindData
	case fatalCodes[code]:
		return KindFatal
	}
	return KindRetry
}
