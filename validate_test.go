package retrylens_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
)

var (
	now    = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	limits = retrylens.Limits{Now: now}
)

// valid returns a record that keeps every rule and has every field that may be
// set with outcome error.
func valid() retrylens.Attempt {
	return retrylens.Attempt{
		Tenant: "acme", LogicalID: "op-1", OperationStartedAt: now.Add(-time.Hour), Attempt: 1, Provider: "openai", StartedAt: now.Add(-time.Hour),
		Outcome: retrylens.OutcomeError, ErrorClass: retrylens.ClassTimeout, Status: retrylens.Some[uint16](0),
		PromptTokens: retrylens.Some[int64](100), CompletionTokens: retrylens.Some[int64](50), CostUSD: retrylens.Some(retrylens.PicoUSD(1)),
		Attributes: map[string]string{"k": "v"},
	}
}

// succeed turns the record into a success.
func succeed(a *retrylens.Attempt) {
	a.Outcome, a.ErrorClass = retrylens.OutcomeSuccess, ""
}

func with(o retrylens.Outcome, class retrylens.ErrorClass) func(*retrylens.Attempt) {
	return func(a *retrylens.Attempt) { a.Outcome, a.ErrorClass = o, class }
}

func all(changes ...func(*retrylens.Attempt)) func(*retrylens.Attempt) {
	return func(a *retrylens.Attempt) {
		for _, c := range changes {
			c(a)
		}
	}
}

// verdict is the field that a changed record is refused for, or "".
func verdict(change func(*retrylens.Attempt), l retrylens.Limits) string {
	a := valid()
	change(&a)
	a.Normalize()
	if err := a.Validate(l); err != nil {
		return err.Field
	}
	return ""
}

func TestTextsAreAcceptedAtTheirBoundAndRefusedBeyond(t *testing.T) {
	type text struct {
		at  func(*retrylens.Attempt) *string
		max int
	}
	for field, c := range map[string]text{
		"tenant":              {func(a *retrylens.Attempt) *string { return &a.Tenant }, 64},
		"logical_id":          {func(a *retrylens.Attempt) *string { return &a.LogicalID }, 256},
		"service":             {func(a *retrylens.Attempt) *string { return &a.Service }, 128},
		"environment":         {func(a *retrylens.Attempt) *string { return &a.Environment }, 128},
		"operation":           {func(a *retrylens.Attempt) *string { return &a.Operation }, 128},
		"provider":            {func(a *retrylens.Attempt) *string { return &a.Provider }, 64},
		"model":               {func(a *retrylens.Attempt) *string { return &a.Model }, 128},
		"response_model":      {func(a *retrylens.Attempt) *string { return &a.ResponseModel }, 128},
		"endpoint":            {func(a *retrylens.Attempt) *string { return &a.Endpoint }, 256},
		"idempotency_key":     {func(a *retrylens.Attempt) *string { return &a.IdempotencyKey }, 255},
		"fingerprint":         {func(a *retrylens.Attempt) *string { return &a.Fingerprint }, 80},
		"provider_error_type": {func(a *retrylens.Attempt) *string { return &a.ProviderErrorType }, 128},
		"provider_request_id": {func(a *retrylens.Attempt) *string { return &a.ProviderRequestID }, 256},
		"reason":              {func(a *retrylens.Attempt) *string { return &a.Reason }, 256},
		"emitter":             {func(a *retrylens.Attempt) *string { return &a.Emitter }, 128},
	} {
		umlauts := strings.Repeat("ä", c.max/2) // two bytes each: the bound is in bytes
		for _, good := range []string{strings.Repeat("x", c.max), umlauts, "a b\u00a0c"} {
			if got := verdict(func(a *retrylens.Attempt) { *c.at(a) = good }, limits); got != "" {
				t.Errorf("%s of %d bytes is refused for %s", field, len(good), got)
			}
		}
		for _, bad := range []string{strings.Repeat("x", c.max+1), umlauts + "ä", "a\x00", "a\nb", "a\x7f", "a\u0085", "a\xff"} {
			if got := verdict(func(a *retrylens.Attempt) { *c.at(a) = bad }, limits); got != field {
				t.Errorf("%s %.10q of %d bytes: refused for %q", field, bad, len(bad), got)
			}
		}
	}
}

func TestIntegersAreAcceptedAtTheirBoundAndRefusedBeyond(t *testing.T) {
	const tokens, integer = 1_000_000_000_000, 1<<53 - 1
	type count struct {
		at  func(*retrylens.Attempt) *retrylens.Opt[int64]
		max int64
	}
	for field, c := range map[string]count{
		"duration_ms":          {func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.DurationMS }, integer},
		"ttfb_ms":              {func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.TTFBMS }, integer},
		"retry_after_ms":       {func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.RetryAfterMS }, integer},
		"delay_ms":             {func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.DelayMS }, integer},
		"seq":                  {func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.Seq }, integer},
		"prompt_tokens":        {func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.PromptTokens }, tokens},
		"completion_tokens":    {func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.CompletionTokens }, tokens},
		"cached_prompt_tokens": {func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.CachedPromptTokens }, tokens},
		"cache_write_tokens":   {func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.CacheWriteTokens }, tokens},
		"reasoning_tokens":     {func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.ReasoningTokens }, tokens},
	} {
		for _, n := range []int64{-1, 0, c.max, c.max + 1} {
			got := verdict(func(a *retrylens.Attempt) {
				a.PromptTokens, a.CompletionTokens = retrylens.Opt[int64]{}, retrylens.Opt[int64]{}
				*c.at(a) = retrylens.Some(n)
			}, limits)
			if good := n >= 0 && n <= c.max; good && got != "" || !good && got != field {
				t.Errorf("%s %d: refused for %q", field, n, got)
			}
		}
	}
	for _, status := range []uint16{0, 1, 99, 100, 599, 600} {
		good := status == 0 || status >= 100 && status <= 599
		if got := verdict(func(a *retrylens.Attempt) { a.Status = retrylens.Some(status) }, limits); (got == "") != good {
			t.Errorf("status %d: refused for %q", status, got)
		}
	}
}

func TestRulesInBothDirections(t *testing.T) {
	type change = func(*retrylens.Attempt)
	times := func(d time.Duration) change {
		return func(a *retrylens.Attempt) { a.StartedAt, a.OperationStartedAt = now.Add(d), now.Add(d) }
	}
	tokens := func(prompt, cached, written int64) change {
		return func(a *retrylens.Attempt) {
			a.PromptTokens, a.CachedPromptTokens, a.CacheWriteTokens = retrylens.Some(prompt), retrylens.Some(cached), retrylens.Some(written)
		}
	}
	delivery := func(d retrylens.Delivery) change { return func(a *retrylens.Attempt) { a.Delivery = d } }
	calls := func(n uint16) change {
		return func(a *retrylens.Attempt) { a.UpstreamCalls = retrylens.Some(n) }
	}
	for name, c := range map[string]struct {
		change change
		field  string
	}{
		"as it is":                      {func(*retrylens.Attempt) {}, ""},
		"tenant missing":                {func(a *retrylens.Attempt) { a.Tenant = "" }, "tenant"},
		"logical_id missing":            {func(a *retrylens.Attempt) { a.LogicalID = "" }, "logical_id"},
		"provider missing":              {func(a *retrylens.Attempt) { a.Provider = "" }, "provider"},
		"provider upper case":           {func(a *retrylens.Attempt) { a.Provider = "OpenAI" }, "provider"},
		"provider with digits":          {func(a *retrylens.Attempt) { a.Provider = "azure_openai-2" }, ""},
		"outcome missing":               {func(a *retrylens.Attempt) { a.Outcome = "" }, "outcome"},
		"started_at missing":            {func(a *retrylens.Attempt) { a.StartedAt = time.Time{} }, "started_at"},
		"operation start missing":       {func(a *retrylens.Attempt) { a.OperationStartedAt = time.Time{} }, "operation_started_at"},
		"operation start defaulted":     {func(a *retrylens.Attempt) { a.OperationStartedAt, a.Attempt = time.Time{}, 0 }, ""},
		"attempt negative":              {func(a *retrylens.Attempt) { a.Attempt = -1 }, "attempt"},
		"hop unknown":                   {func(a *retrylens.Attempt) { a.Hop = "x" }, "hop"},
		"cause unknown":                 {func(a *retrylens.Attempt) { a.Cause = "x" }, "cause"},
		"outcome unknown":               {func(a *retrylens.Attempt) { a.Outcome = "x" }, "outcome"},
		"delivery unknown":              {delivery("x"), "delivery"},
		"error_class unknown":           {func(a *retrylens.Attempt) { a.ErrorClass = "x" }, "error_class"},
		"stop_reason unknown":           {func(a *retrylens.Attempt) { a.StopReason = "x" }, "stop_reason"},
		"usage_source unknown":          {func(a *retrylens.Attempt) { a.UsageSource = "x" }, "usage_source"},
		"cost_source unknown":           {func(a *retrylens.Attempt) { a.CostSource = "x" }, "cost_source"},
		"10 minutes ahead":              {times(10 * time.Minute), ""},
		"more than 10 minutes ahead":    {times(10*time.Minute + time.Millisecond), "started_at"},
		"operation start ahead":         {func(a *retrylens.Attempt) { a.OperationStartedAt = now.Add(10*time.Minute + time.Millisecond) }, "operation_started_at"},
		"first moment of 2020":          {times(-now.Sub(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))), ""},
		"last moment of 2019":           {times(-now.Sub(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)) - time.Millisecond), "started_at"},
		"operation 1 s later":           {func(a *retrylens.Attempt) { a.OperationStartedAt = a.StartedAt.Add(time.Second) }, ""},
		"operation more than 1 s later": {func(a *retrylens.Attempt) { a.OperationStartedAt = a.StartedAt.Add(1001 * time.Millisecond) }, "operation_started_at"},
		"parts fill the prompt":         {tokens(100, 60, 40), ""},
		"parts exceed the prompt":       {tokens(100, 60, 41), "cached_prompt_tokens"},
		"parts without a total":         {all(tokens(0, 60, 41), func(a *retrylens.Attempt) { a.PromptTokens = retrylens.Opt[int64]{} }), ""},
		"reasoning is the completion":   {func(a *retrylens.Attempt) { a.ReasoningTokens = retrylens.Some[int64](50) }, ""},
		"reasoning exceeds it":          {func(a *retrylens.Attempt) { a.ReasoningTokens = retrylens.Some[int64](51) }, "reasoning_tokens"},
		"first with attempt 0":          {func(a *retrylens.Attempt) { a.Attempt, a.Cause = 0, retrylens.CauseFirst }, ""},
		"first with attempt 1":          {func(a *retrylens.Attempt) { a.Cause = retrylens.CauseFirst }, "cause"},
		"policy with attempt 0":         {func(a *retrylens.Attempt) { a.Attempt, a.Cause = 0, retrylens.CausePolicy }, "cause"},
		"success without class":         {succeed, ""},
		"success with class":            {with(retrylens.OutcomeSuccess, retrylens.ClassTimeout), "error_class"},
		"replayed with class":           {with(retrylens.OutcomeReplayed, retrylens.ClassTimeout), "error_class"},
		"replayed without class":        {with(retrylens.OutcomeReplayed, ""), ""},
		"error without class":           {with(retrylens.OutcomeError, ""), "error_class"},
		"abandoned without class":       {with(retrylens.OutcomeAbandoned, ""), "error_class"},
		"success, partial":              {all(succeed, delivery(retrylens.DeliveryPartial)), "delivery"},
		"success, none":                 {all(succeed, delivery(retrylens.DeliveryNone)), "delivery"},
		"replayed, none":                {all(with(retrylens.OutcomeReplayed, ""), delivery(retrylens.DeliveryNone)), ""},
		"replayed, partial":             {all(with(retrylens.OutcomeReplayed, ""), delivery(retrylens.DeliveryPartial)), "delivery"},
		"error, partial":                {delivery(retrylens.DeliveryPartial), ""},
		"error, full":                   {delivery(retrylens.DeliveryFull), "delivery"},
		"interrupted, none":             {all(with(retrylens.OutcomeInterrupted, retrylens.ClassStreamInterrupted), delivery(retrylens.DeliveryNone)), ""},
		"interrupted, full":             {all(with(retrylens.OutcomeInterrupted, retrylens.ClassStreamInterrupted), delivery(retrylens.DeliveryFull)), "delivery"},
		"replayed with a call":          {all(with(retrylens.OutcomeReplayed, ""), calls(1)), "upstream_calls"},
		"in_flight with a call":         {all(with(retrylens.OutcomeInFlight, retrylens.ClassConflict), calls(1)), "upstream_calls"},
		"key_mismatch with a call":      {all(with(retrylens.OutcomeKeyMismatch, retrylens.ClassInvalidRequest), calls(1)), "upstream_calls"},
		"shed with a call":              {all(with(retrylens.OutcomeShed, retrylens.ClassUnavailable), calls(1)), "upstream_calls"},
		"shed without":                  {all(with(retrylens.OutcomeShed, retrylens.ClassUnavailable), calls(0)), ""},
		"error with many calls":         {calls(65535), ""},
		"served_by of a client":         {func(a *retrylens.Attempt) { a.ServedBy = retrylens.Some[int32](0) }, ""},
		"served_by of a gateway":        {func(a *retrylens.Attempt) { a.Hop, a.ServedBy = retrylens.HopGateway, retrylens.Some[int32](0) }, "served_by"},
		"served_by negative":            {func(a *retrylens.Attempt) { a.ServedBy = retrylens.Some[int32](-1) }, "served_by"},
		"replay_of of a replay":         {all(with(retrylens.OutcomeReplayed, ""), func(a *retrylens.Attempt) { a.ReplayOf = retrylens.Some[int32](0) }), ""},
		"replay_of of an error":         {func(a *retrylens.Attempt) { a.ReplayOf = retrylens.Some[int32](0) }, "replay_of"},
		"replay_of negative":            {all(with(retrylens.OutcomeReplayed, ""), func(a *retrylens.Attempt) { a.ReplayOf = retrylens.Some[int32](-1) }), "replay_of"},
		"cost at the bound":             {func(a *retrylens.Attempt) { a.CostUSD = retrylens.Some(usd(t, "99999999999999.999999999999")) }, ""},
		"cost beyond":                   {func(a *retrylens.Attempt) { a.CostUSD = retrylens.Some(tooMuch(t)) }, "cost_usd"},
		"16 attributes":                 {attributes(16, "k", "v"), ""},
		"17 attributes":                 {attributes(17, "k", "v"), "attributes"},
		"attribute key of 64":           {attributes(1, strings.Repeat("k", 62), "v"), ""},
		"attribute key of 65":           {attributes(1, strings.Repeat("k", 63), "v"), "attributes"},
		"attribute value of 256":        {attributes(1, "k", strings.Repeat("v", 256)), ""},
		"attribute value of 257":        {attributes(1, "k", strings.Repeat("v", 257)), "attributes"},
		"attribute value empty":         {attributes(1, "k", ""), ""},
		"attribute key empty":           {func(a *retrylens.Attempt) { a.Attributes = map[string]string{"": "v"} }, "attributes"},
		"attribute with a line break":   {attributes(1, "k", "a\nb"), "attributes"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdict(c.change, limits); got != c.field {
				t.Errorf("refused for %q, want %q", got, c.field)
			}
		})
	}
}

// attributes sets n attributes whose keys are key and a two-digit number.
func attributes(n int, key, value string) func(*retrylens.Attempt) {
	return func(a *retrylens.Attempt) {
		a.Attributes = map[string]string{}
		for i := range n {
			a.Attributes[fmt.Sprintf("%s%02d", key, i)] = value
		}
	}
}

func usd(t *testing.T, s string) retrylens.Money {
	t.Helper()
	m, err := retrylens.ParseMoney(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func tooMuch(t *testing.T) retrylens.Money {
	t.Helper()
	m, ok := retrylens.MoneyFromPico(new(big.Int).Exp(big.NewInt(10), big.NewInt(26), nil))
	if !ok {
		t.Fatal("10^26 does not fit")
	}
	return m
}

func TestRetentionCountsFromTheStartOfTheOperation(t *testing.T) {
	l := retrylens.Limits{Now: now, Retention: 24 * time.Hour}
	for d, want := range map[time.Duration]string{24 * time.Hour: "", 24*time.Hour + time.Millisecond: "operation_started_at"} {
		if got := verdict(func(a *retrylens.Attempt) { a.OperationStartedAt = now.Add(-d) }, l); got != want {
			t.Errorf("%v ago: refused for %q", d, got)
		}
	}
}

func TestDefaultsOfTheRecord(t *testing.T) {
	class := func(o retrylens.Outcome) retrylens.ErrorClass {
		if o == retrylens.OutcomeSuccess || o == retrylens.OutcomeReplayed {
			return ""
		}
		return retrylens.ClassTimeout
	}
	for o, want := range map[retrylens.Outcome]string{
		retrylens.OutcomeSuccess: "full 1 true", retrylens.OutcomeError: "none 1 false", retrylens.OutcomeReplayed: "full 0 true",
		retrylens.OutcomeInFlight: "none 0 false", retrylens.OutcomeKeyMismatch: "none 0 true", retrylens.OutcomeShed: "none 0 false",
		retrylens.OutcomeAbandoned: "none 1 false", retrylens.OutcomeInterrupted: "partial 1 false", retrylens.OutcomeHedgeLost: "none 1 false",
	} {
		a := valid()
		a.Outcome, a.ErrorClass = o, class(o)
		a.Normalize()
		if got := fmt.Sprintf("%s %d %t", a.Delivery, a.UpstreamCalls.Value, a.Final.Value); got != want {
			t.Errorf("%s: delivery, upstream_calls, final are %s, want %s", o, got, want)
		}
		if err := a.Validate(limits); err != nil {
			t.Errorf("%s: the defaults break a rule: %v", o, err)
		}
		again := a
		again.Normalize()
		if string(again.AppendJSON(nil)) != string(a.AppendJSON(nil)) {
			t.Errorf("%s: Normalize is not idempotent", o)
		}
	}
	a := valid()
	a.ErrorClass = retrylens.ClassTransportPresend
	a.PromptTokens, a.CompletionTokens, a.CostUSD = retrylens.Opt[int64]{}, retrylens.Opt[int64]{}, retrylens.Opt[retrylens.Money]{}
	a.Normalize()
	if a.UpstreamCalls.Value != 0 || a.UsageSource != retrylens.UsageUnknown || a.CostSource != retrylens.CostNone || a.Cause != retrylens.CausePolicy || a.Hop != retrylens.HopClient {
		t.Errorf("%s", a.AppendJSON(nil))
	}
}
