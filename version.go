package retrylens

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Version orders the records of one identity: the highest wins. It is the
// revision in the top 8 bits and the content hash in the rest, so the winner
// does not depend on the order of arrival. Call it on a normalized attempt.
func (a *Attempt) Version() uint64 {
	return uint64(a.Revision)<<56 | a.ContentHash()>>8
}

// ContentHash is the first 8 bytes (big endian) of the SHA-256 of every field
// of a normalized attempt in a fixed binary form. It is stable across versions
// of this package: stored versions depend on it (golden-tested).
func (a *Attempt) ContentHash() uint64 {
	var buf [1024]byte
	sum := sha256.Sum256(a.appendContent(buf[:0]))
	return binary.BigEndian.Uint64(sum[:8])
}

// appendContent writes every field in the order of the record's document:
// texts with their length before them, optional values behind a byte that tells
// whether they are set.
func (a *Attempt) appendContent(b []byte) []byte {
	b = appendTexts(b, a.Tenant, a.LogicalID)
	b = appendTime(b, a.OperationStartedAt)
	b = appendTexts(b, string(a.Hop), string(a.Cause))
	b = binary.BigEndian.AppendUint32(b, uint32(a.Attempt))
	b = append(b, a.Revision)
	b = appendTexts(b, a.Service, a.Environment, a.Operation, a.Provider, a.Model, a.ResponseModel, a.Endpoint)
	b = appendBool(b, a.Stream)
	b = appendTexts(b, a.IdempotencyKey, a.Fingerprint)
	b = appendTime(b, a.StartedAt)
	b = appendOpt(b, a.DurationMS)
	b = appendOpt(b, a.TTFBMS)
	b = appendTexts(b, string(a.Outcome), string(a.Delivery))
	b = appendOpt(b, a.UpstreamCalls)
	b = appendOpt(b, a.Status)
	b = appendTexts(b, string(a.ErrorClass), a.ProviderErrorType, a.ProviderRequestID)
	b = appendOpt(b, a.RetryAfterMS)
	b = appendOpt(b, a.DelayMS)
	b = appendBool(appendBool(b, a.Final.Set), a.Final.Value)
	b = appendTexts(b, string(a.StopReason))
	b = appendOpt(b, a.ServedBy)
	b = appendOpt(b, a.ReplayOf)
	for _, n := range [...]Opt[int64]{a.PromptTokens, a.CompletionTokens, a.CachedPromptTokens, a.CacheWriteTokens, a.ReasoningTokens} {
		b = appendOpt(b, n)
	}
	b = appendTexts(b, string(a.UsageSource), string(a.CostSource))
	b = appendBool(b, a.CostUSD.Set)
	hi, lo := a.CostUSD.Value.Words()
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, hi), lo)
	b = binary.AppendUvarint(b, uint64(len(a.Attributes)))
	if len(a.Attributes) > 0 {
		for _, k := range sortedKeys(a.Attributes) {
			b = appendTexts(b, k, a.Attributes[k])
		}
	}
	b = appendTexts(b, a.Reason, a.Emitter)
	return appendOpt(b, a.Seq)
}

func appendTexts(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

func appendTime(b []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(t.UnixMilli()))
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendOpt[T int64 | int32 | uint16](b []byte, o Opt[T]) []byte {
	return binary.AppendUvarint(appendBool(b, o.Set), uint64(o.Value))
}
