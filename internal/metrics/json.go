package metrics

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/retrylens/retrylens"
)

// AppendJSON appends the row as one JSON object: its dimensions, the start of
// its bucket if it has one, then the figures of [Formulas] in their order (the
// spend figures only where groupBy has an executed dimension). Maps are sorted,
// zero entries left out; money is a string of 12 decimals.
func (r *Row) AppendJSON(dst []byte, groupBy []Dimension) []byte {
	dst = append(dst, '{')
	for i, d := range groupBy {
		dst = appendString(appendKey(dst, string(d)), r.Dims[i])
	}
	if !r.Bucket.IsZero() {
		dst = appendTime(appendKey(dst, "bucket"), r.Bucket)
	}
	spendOnly := Query{GroupBy: groupBy}.Spend()
	for i := range Formulas {
		if f := &Formulas[i]; f.Spend || !spendOnly {
			dst = f.appendJSON(appendKey(dst, f.Name), r)
		}
	}
	return append(dst, '}')
}

func (f *Formula) appendJSON(dst []byte, r *Row) []byte {
	if f.Label == "" {
		return f.value(r).AppendJSON(dst)
	}
	dst = append(dst, '{')
	for _, e := range f.entries(r) {
		dst = e.Value.AppendJSON(appendKey(dst, e.Key))
	}
	return append(dst, '}')
}

// MarshalJSON writes the report; a missing from or to is null.
func (r *Report) MarshalJSON() ([]byte, error) {
	b := appendTime(appendKey([]byte{'{'}, "from"), r.From)
	b = appendTime(appendKey(b, "to"), r.To)
	b = appendTime(appendKey(b, "as_of"), r.AsOf)
	b = append(appendKey(b, "group_by"), '[')
	for i, d := range r.GroupBy {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, string(d))
	}
	b = append(b, ']')
	if r.Bucket > 0 {
		b = strconv.AppendInt(appendKey(b, "bucket_seconds"), int64(r.Bucket/time.Second), 10)
	}
	b = strconv.AppendBool(appendKey(b, "provisional"), r.Provisional)
	b, err := r.Completeness.appendJSON(appendKey(b, "completeness"))
	if err != nil {
		return nil, err
	}
	if len(r.Unknown) > 0 {
		names, err := json.Marshal(r.Unknown)
		if err != nil {
			return nil, err
		}
		b = append(appendKey(b, "unknown"), names...)
	}
	b = append(appendKey(b, "rows"), '[')
	for i := range r.Rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.Rows[i].AppendJSON(b, r.GroupBy)
	}
	return append(b, "]}"...), nil
}

// MarshalJSON writes what is not known as null.
func (c *Completeness) MarshalJSON() ([]byte, error) { return c.appendJSON(nil) }

func (c *Completeness) appendJSON(dst []byte) ([]byte, error) {
	if c == nil {
		return append(dst, "null"...), nil
	}
	gaps := c.Emitters
	if gaps == nil {
		gaps = []EmitterGap{}
	}
	b, err := json.Marshal(struct {
		RecordsMissing  *uint64      `json:"records_missing"`
		CoverageRatio   *float64     `json:"coverage_ratio"`
		Emitters        []EmitterGap `json:"emitters"`
		KnownUsageRatio *float64     `json:"known_usage_ratio"`
		RejectedLines   *uint64      `json:"rejected_lines"`
		DeadLetters     *uint64      `json:"dead_letters"`
		SpoolAgeMS      *int64       `json:"spool_age_ms"`
		FinaliserLagMS  *int64       `json:"finaliser_lag_ms"`
	}{
		pointer(c.RecordsMissing), pointer(c.CoverageRatio), gaps, pointer(c.KnownUsageRatio),
		pointer(c.RejectedLines), pointer(c.DeadLetters), pointer(c.SpoolAgeMS), pointer(c.FinaliserLagMS),
	})
	return append(dst, b...), err
}

func pointer[T any](o retrylens.Opt[T]) *T {
	if !o.Set {
		return nil
	}
	return &o.Value
}

// appendKey appends a member's key, and the comma before it unless it is the
// first of its object.
func appendKey(dst []byte, key string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(appendString(dst, key), ':')
}

func appendString(dst []byte, s string) []byte {
	b, _ := json.Marshal(s) // a string cannot fail
	return append(dst, b...)
}

func appendTime(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(dst, "null"...)
	}
	return append(t.UTC().AppendFormat(append(dst, '"'), time.RFC3339Nano), '"')
}
