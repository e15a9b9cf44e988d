package arith

import "github.com/retrylens/retrylens"

// million tokens are what prices are for.
const million = 1_000_000

// Bounds of what is reckoned: tokens of a day fit 64 bits, their price Money.
const (
	maxTokens   = 10_000_000
	maxRequests = 1_000_000_000
)

var maxPrice = retrylens.PicoUSD(1_000_000_000_000).MulDiv(1_000_000, 1)

func priceWithin(price retrylens.Money) error {
	if price.Cmp(maxPrice) > 0 {
		return &NumberError{"price", "at most 1000000 USD per million tokens, got " + price.String()}
	}
	return nil
}

// TimeoutOptions describe requests that run into a client's timeout: the provider
// generates and bills an answer for each try, and nobody reads it.
type TimeoutOptions struct {
	Tokens   uint64          // of one call
	Price    retrylens.Money // USD per million tokens
	Requests uint64          // a day that run into the timeout
	Retries  uint64          // of each
	Days     uint64          // of a month
}

// DefaultTimeout is the field's example: 216 USD a day.
func DefaultTimeout() TimeoutOptions {
	return TimeoutOptions{Tokens: 1800, Price: retrylens.PicoUSD(3_000_000_000_000), Requests: 20_000, Retries: 2, Days: 30}
}

// TimeoutCost is what the retries of timed-out requests cost; the first tries are
// not in it.
type TimeoutCost struct {
	RetriesADay uint64          `json:"retries_per_day"`
	TokensADay  uint64          `json:"tokens_per_day"`
	CallUSD     retrylens.Money `json:"call_usd"`
	DayUSD      retrylens.Money `json:"day_usd"`
	MonthUSD    retrylens.Money `json:"month_usd"`
}

// Timeout reckons it: requests × retries × tokens × price, rounded once, to a
// pico-dollar. The error is a *NumberError.
func Timeout(o TimeoutOptions) (TimeoutCost, error) {
	err := first(
		within("tokens", o.Tokens, 1, maxTokens),
		priceWithin(o.Price),
		within("requests", o.Requests, 1, maxRequests),
		within("retries", o.Retries, 0, 98),
		within("days", o.Days, 1, 366),
	)
	if err != nil {
		return TimeoutCost{}, err
	}
	c := TimeoutCost{RetriesADay: o.Requests * o.Retries, CallUSD: o.Price.MulDiv(o.Tokens, million)}
	c.TokensADay = c.RetriesADay * o.Tokens
	c.DayUSD = o.Price.MulDiv(c.TokensADay, million)
	c.MonthUSD = c.DayUSD.MulDiv(o.Days, 1)
	return c, nil
}

// HedgeOptions describe requests of which a share gets a second copy.
type HedgeOptions struct {
	Requests uint64
	Share    Share           // of the requests that may get a copy
	Tokens   uint64          // of one generation
	Price    retrylens.Money // USD per million tokens
}

// DefaultHedge is the field's example: up to 1,050,000 generations.
func DefaultHedge() HedgeOptions {
	return HedgeOptions{Requests: 1_000_000, Share: Whole / 20, Tokens: 1800, Price: retrylens.PicoUSD(3_000_000_000_000)}
}

// HedgeCost is what hedging costs at most: when every copy that is allowed is sent
// and generated to its end.
type HedgeCost struct {
	Copies      uint64          `json:"copies"`
	Generations uint64          `json:"generations"`
	ExtraTokens uint64          `json:"extra_tokens"`
	ExtraUSD    retrylens.Money `json:"extra_usd"`
	TotalUSD    retrylens.Money `json:"total_usd"`
}

// Hedge reckons it; the copies are rounded down. The error is a *NumberError.
func Hedge(o HedgeOptions) (HedgeCost, error) {
	err := first(
		within("requests", o.Requests, 1, maxRequests),
		within("share", o.Share, 0, Whole),
		within("tokens", o.Tokens, 1, maxTokens),
		priceWithin(o.Price),
	)
	if err != nil {
		return HedgeCost{}, err
	}
	copies := o.Share.Of(o.Requests)
	return HedgeCost{
		Copies: copies, Generations: o.Requests + copies, ExtraTokens: copies * o.Tokens,
		ExtraUSD: o.Price.MulDiv(copies*o.Tokens, million),
		TotalUSD: o.Price.MulDiv((o.Requests+copies)*o.Tokens, million),
	}, nil
}
