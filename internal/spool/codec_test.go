package spool_test

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics/histories"
	"github.com/retrylens/retrylens/internal/spool"
)

// full is an attempt with every field set.
func full() retrylens.Attempt {
	cost, _ := retrylens.ParseMoney("12345678901234.123456789012")
	at := time.Date(2026, 11, 28, 0, 0, 0, 123e6, time.UTC)
	return retrylens.Attempt{
		Tenant: "acme", LogicalID: "op", OperationStartedAt: at.Add(-time.Minute), Hop: retrylens.HopGateway, Attempt: 102,
		Revision: 3, Cause: retrylens.CauseHedge, Service: "s", Environment: "e", Operation: "o", Provider: "p", Model: "m",
		ResponseModel: "rm", Endpoint: "/v1", Stream: true, IdempotencyKey: "key", Fingerprint: "sha256:aa", StartedAt: at,
		DurationMS: retrylens.Some[int64](0), TTFBMS: retrylens.Some[int64](7), Outcome: retrylens.OutcomeInterrupted,
		Delivery: retrylens.DeliveryPartial, UpstreamCalls: retrylens.Some[uint16](65535), Status: retrylens.Some[uint16](0),
		ErrorClass: retrylens.ClassUnclassified, ProviderErrorType: "pet", ProviderRequestID: "prid",
		RetryAfterMS: retrylens.Some[int64](retrylens.MaxInteger), DelayMS: retrylens.Some[int64](1), Final: retrylens.Some(true),
		StopReason: retrylens.StopRepeatedIdentically, ServedBy: retrylens.Some[int32](2147483647), ReplayOf: retrylens.Some[int32](0),
		PromptTokens: retrylens.Some[int64](1), CompletionTokens: retrylens.Some[int64](2), CachedPromptTokens: retrylens.Some[int64](3),
		CacheWriteTokens: retrylens.Some[int64](4), ReasoningTokens: retrylens.Some[int64](5), UsageSource: retrylens.UsageUnknown,
		CostUSD: retrylens.Some(cost), CostSource: retrylens.CostNone, Attributes: map[string]string{"b": "2", "a": "1", "": ""},
		Reason: "because", Emitter: "em", Seq: retrylens.Some[int64](9),
	}
}

func requireSame(t *testing.T, a retrylens.Attempt) {
	t.Helper()
	var got retrylens.Attempt
	if err := spool.DecodeRecord(string(spool.AppendRecord(nil, &a)), &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, a) {
		t.Errorf("got  %+v\nwant %+v", got, a)
	}
}

// A field that is added to Attempt must be added to the codec, as version 2.
func TestEveryFieldComesBack(t *testing.T) {
	a := full()
	v := reflect.ValueOf(a)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not set in the sample", v.Type().Field(i).Name)
		}
	}
	requireSame(t, a)
	for i := range v.NumField() { // each alone left out
		b := full()
		reflect.ValueOf(&b).Elem().Field(i).SetZero()
		if f := v.Type().Field(i); f.Type != reflect.TypeFor[time.Time]() { // those are never missing
			requireSame(t, b)
		}
	}
	if n := spool.Texts(&a); n != 15 {
		t.Errorf("%d texts", n)
	}
}

func TestHistoriesComeBack(t *testing.T) {
	for _, a := range histories.Generate(7, 5000) {
		requireSame(t, a)
	}
}

// Spools outlive the program that wrote them.
func TestTheFormOfARecordIsGolden(t *testing.T) {
	a := full()
	sum := sha256.Sum256(spool.AppendRecord(nil, &a))
	if got := hex.EncodeToString(sum[:]); got != goldenRecord {
		t.Errorf("the record's bytes changed (%s): old spools could not be read; add a codec version", got)
	}
}

const goldenRecord = "acbac3fdf87e6ff90f4566bc1ba2e83cef0ab6599c911fdc72cd44bc9903725c"

func FuzzDecodeRecord(f *testing.F) {
	a := full()
	f.Add(spool.AppendRecord(nil, &a))
	f.Add([]byte{1})
	for _, h := range histories.Generate(1, 20) {
		f.Add(spool.AppendRecord(nil, &h))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var a retrylens.Attempt
		if spool.DecodeRecord(string(b), &a) != nil {
			return
		}
		var again retrylens.Attempt
		if err := spool.DecodeRecord(string(spool.AppendRecord(nil, &a)), &again); err != nil {
			t.Fatalf("%x decodes to what does not encode: %v", b, err)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	all := histories.Generate(1, 1000)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for i := 0; b.Loop(); i++ {
			buf = spool.AppendRecord(buf[:0], &all[i%len(all)])
		}
		b.SetBytes(int64(len(buf)))
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		texts := make([][]byte, len(all))
		for i := range all {
			texts[i] = spool.AppendRecord(nil, &all[i])
		}
		var a retrylens.Attempt
		for i := 0; b.Loop(); i++ {
			if err := spool.DecodeRecord(string(texts[i%len(texts)]), &a); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestFramesOfAnotherSegmentAreNone: a block that a file system gives back from an older
// file holds no records.
func TestFramesOfAnotherSegmentAreNone(t *testing.T) {
	frames := spool.Frames(1, record(1), record(2))
	if records, _, bad := spool.ScanBytes(frames, 2); len(records) != 0 || bad != len(frames) {
		t.Errorf("%d records of another segment, %d of %d bytes are bad", len(records), bad, len(frames))
	}
	if records, _, bad := spool.ScanBytes(frames, 1); len(records) != 2 || bad != 0 {
		t.Errorf("%d records of its own, %d bytes are bad", len(records), bad)
	}
}
