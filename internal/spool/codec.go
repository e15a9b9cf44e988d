package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/retrylens/retrylens"
)

// codecVersion is the first byte of every record. Fields are only ever added,
// behind a new version; old ones stay readable.
const codecVersion = 1

// MaxRecord is the most bytes that a valid attempt takes in this form: its texts
// add up to less than 9 KiB.
const MaxRecord = 16 << 10

var errRecord = errors.New("spool: a record that does not decode")

// The bits of a record tell which optional values follow, in this order.
const (
	bitStream = iota
	bitFinalSet
	bitFinal
	bitDuration
	bitTTFB
	bitUpstreamCalls
	bitStatus
	bitRetryAfter
	bitDelay
	bitServedBy
	bitReplayOf
	bitPromptTokens
	bitCompletionTokens
	bitCachedPromptTokens
	bitCacheWriteTokens
	bitReasoningTokens
	bitSeq
	bitCost
	bitAttributes
	bitFirstText // bit i says that text i is not empty
)

// AppendRecord appends a normalized, valid attempt in its compact binary form.
func AppendRecord(b []byte, a *retrylens.Attempt) []byte {
	start := len(b)
	b = append(b, codecVersion, 0, 0, 0, 0, 0, 0, 0, 0) // the bits come last
	bits := flag(bitStream, a.Stream) | flag(bitFinalSet, a.Final.Set) | flag(bitFinal, a.Final.Value)
	b = append(b, number(a.Hop, retrylens.Hops), number(a.Cause, retrylens.Causes), number(a.Outcome, retrylens.Outcomes),
		number(a.Delivery, retrylens.Deliveries), number(a.ErrorClass, retrylens.ErrorClasses), number(a.StopReason, retrylens.StopReasons),
		number(a.UsageSource, retrylens.UsageSources), number(a.CostSource, retrylens.CostSources), a.Revision)
	started := a.StartedAt.UnixMilli()
	b = binary.AppendVarint(b, started)
	b = binary.AppendVarint(b, a.OperationStartedAt.UnixMilli()-started)
	b = binary.AppendUvarint(b, uint64(a.Attempt))
	for i, o := range [...]retrylens.Opt[int64]{
		a.DurationMS, a.TTFBMS, widen(a.UpstreamCalls), widen(a.Status), a.RetryAfterMS, a.DelayMS, widen(a.ServedBy), widen(a.ReplayOf),
		a.PromptTokens, a.CompletionTokens, a.CachedPromptTokens, a.CacheWriteTokens, a.ReasoningTokens, a.Seq,
	} {
		if o.Set {
			bits |= 1 << (bitDuration + i)
			b = binary.AppendUvarint(b, uint64(o.Value))
		}
	}
	if a.CostUSD.Set {
		bits |= 1 << bitCost
		hi, lo := a.CostUSD.Value.Words()
		b = binary.AppendUvarint(binary.AppendUvarint(b, hi), lo)
	}
	if len(a.Attributes) > 0 {
		bits |= 1 << bitAttributes
		b = appendAttributes(b, a.Attributes)
	}
	for i, s := range texts(a) {
		if *s != "" {
			bits |= 1 << (bitFirstText + i)
			b = appendText(b, *s)
		}
	}
	binary.LittleEndian.PutUint64(b[start+1:], bits)
	return b
}

// texts are the free texts of an attempt, in the order of their bits.
func texts(a *retrylens.Attempt) [15]*string {
	return [...]*string{
		&a.Tenant, &a.LogicalID, &a.Service, &a.Environment, &a.Operation, &a.Provider, &a.Model, &a.ResponseModel, &a.Endpoint,
		&a.IdempotencyKey, &a.Fingerprint, &a.ProviderErrorType, &a.ProviderRequestID, &a.Reason, &a.Emitter,
	}
}

func flag(bit int, on bool) uint64 {
	if on {
		return 1 << bit
	}
	return 0
}

// number is the place of an enum's value, from 1; 0 is the empty one.
func number[T comparable](v T, all []T) byte { return byte(slices.Index(all, v) + 1) }

func widen[T uint16 | int32](o retrylens.Opt[T]) retrylens.Opt[int64] {
	return retrylens.Opt[int64]{Value: int64(o.Value), Set: o.Set}
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendAttributes writes them in the order of their keys, so that the same
// attempt is always the same bytes.
func appendAttributes(b []byte, m map[string]string) []byte {
	keys := make([]string, 0, retrylens.MaxAttributes)
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	b = binary.AppendUvarint(b, uint64(len(keys)))
	for _, k := range keys {
		b = appendText(appendText(b, k), m[k])
	}
	return b
}

// DecodeRecord reads what AppendRecord wrote. The texts of a are parts of s.
func DecodeRecord(s string, a *retrylens.Attempt) error {
	const fixed = 1 + 8 + 9
	*a = retrylens.Attempt{}
	if len(s) < fixed {
		return errRecord
	}
	if s[0] != codecVersion {
		return fmt.Errorf("%w: version %d is not known", errRecord, s[0])
	}
	bits := uint64(0)
	for i := range 8 {
		bits |= uint64(s[1+i]) << (8 * i)
	}
	d := recordReader{s: s[fixed:]}
	d.enums(s[9:fixed], a)
	started := d.varint()
	a.StartedAt = time.UnixMilli(started).UTC()
	a.OperationStartedAt = time.UnixMilli(started + d.varint()).UTC()
	a.Attempt = int32(d.uvarint())
	a.Stream = bits&(1<<bitStream) != 0
	a.Final = retrylens.Opt[bool]{Set: bits&(1<<bitFinalSet) != 0, Value: bits&(1<<bitFinal) != 0}
	d.numbers(bits, a)
	if bits&(1<<bitCost) != 0 {
		a.CostUSD = retrylens.Some(d.money())
	}
	if bits&(1<<bitAttributes) != 0 {
		a.Attributes = d.attributes()
	}
	for i, t := range texts(a) {
		if bits&(1<<(bitFirstText+i)) != 0 {
			*t = d.text()
		}
	}
	if d.bad || d.s != "" {
		return errRecord
	}
	return nil
}

// recordReader reads from s; bad remembers that something was missing.
type recordReader struct {
	s   string
	bad bool
}

func (d *recordReader) enums(b string, a *retrylens.Attempt) {
	a.Hop, a.Cause = value(d, b[0], retrylens.Hops), value(d, b[1], retrylens.Causes)
	a.Outcome, a.Delivery = value(d, b[2], retrylens.Outcomes), value(d, b[3], retrylens.Deliveries)
	a.ErrorClass, a.StopReason = value(d, b[4], retrylens.ErrorClasses), value(d, b[5], retrylens.StopReasons)
	a.UsageSource, a.CostSource = value(d, b[6], retrylens.UsageSources), value(d, b[7], retrylens.CostSources)
	a.Revision = b[8]
}

func value[T ~string](d *recordReader, n byte, all []T) T {
	switch {
	case n == 0:
		return ""
	case int(n) > len(all):
		d.bad = true
		return ""
	}
	return all[n-1]
}

func (d *recordReader) numbers(bits uint64, a *retrylens.Attempt) {
	var small [4]retrylens.Opt[int64]
	for i, o := range [...]*retrylens.Opt[int64]{
		&a.DurationMS, &a.TTFBMS, &small[0], &small[1], &a.RetryAfterMS, &a.DelayMS, &small[2], &small[3],
		&a.PromptTokens, &a.CompletionTokens, &a.CachedPromptTokens, &a.CacheWriteTokens, &a.ReasoningTokens, &a.Seq,
	} {
		if bits&(1<<(bitDuration+i)) != 0 {
			*o = retrylens.Some(int64(d.uvarint()))
		}
	}
	a.UpstreamCalls, a.Status = narrow[uint16](small[0]), narrow[uint16](small[1])
	a.ServedBy, a.ReplayOf = narrow[int32](small[2]), narrow[int32](small[3])
}

func narrow[T uint16 | int32](o retrylens.Opt[int64]) retrylens.Opt[T] {
	return retrylens.Opt[T]{Value: T(o.Value), Set: o.Set}
}

func (d *recordReader) uvarint() uint64 {
	var v uint64
	for i := 0; i < len(d.s) && i < binary.MaxVarintLen64; i++ {
		c := d.s[i]
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			d.s = d.s[i+1:]
			return v
		}
	}
	d.bad = true
	return 0
}

func (d *recordReader) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (d *recordReader) text() string {
	n := d.uvarint()
	if n > uint64(len(d.s)) {
		d.bad = true
		return ""
	}
	s := d.s[:n]
	d.s = d.s[n:]
	return s
}

func (d *recordReader) money() retrylens.Money {
	hi, lo := d.uvarint(), d.uvarint()
	if hi == 0 {
		return retrylens.PicoUSD(lo)
	}
	v := new(big.Int).SetUint64(hi)
	v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(lo))
	m, ok := retrylens.MoneyFromPico(v)
	d.bad = d.bad || !ok
	return m
}

func (d *recordReader) attributes() map[string]string {
	n := d.uvarint()
	if n > retrylens.MaxAttributes {
		d.bad = true
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		k := d.text()
		m[k] = d.text()
	}
	return m
}
