package main

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/app/cli"
)

func costCommand(s app.Streams) *cobra.Command {
	return group(&cobra.Command{
		Use:   "cost",
		Short: "Reckon what a timeout, a hedge or a layer of retries costs",
		Long: `cost reckons what a decision about retries costs, from numbers alone: it needs no
store. Money is exact.`,
		Example: `  analyze cost timeout --tokens 1800 --price 3 --requests 20000 --retries 2
  analyze cost hedge --requests 1000000 --share 5%
  analyze cost layers 3x4`,
	}, timeoutCostCommand(s), hedgeCostCommand(s), layerCostCommand(s))
}

func timeoutCostCommand(s app.Streams) *cobra.Command {
	o := app.NewTimeoutCostOptions(s)
	cmd := &cobra.Command{
		Use:   "timeout [flags]",
		Short: "The bill of a timeout that is shorter than the answers",
		Long: `timeout reckons what the retries cost of requests that run into a client's timeout: the
provider generates and bills an answer for each, and nobody reads it. The first tries
are not in it.

1,800 tokens at 3 USD per million, 20,000 requests a day, two retries: 216 USD a day,
6,480 in 30 days.`,
		Example: `  analyze cost timeout
  analyze cost timeout --tokens 4000 --price 0.6 --requests 1000 --retries 3 --days 31 -o json`,
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error { return app.TimeoutCost(o) },
	}
	f := cmd.Flags()
	spendFlags(f, &o.Tokens, &o.Price)
	f.Uint64Var(&o.Requests, "requests", o.Requests, "`N` requests a day that run into the timeout")
	f.Uint64Var(&o.Retries, "retries", o.Retries, "`N` retries of each, all into the timeout")
	f.Uint64Var(&o.Days, "days", o.Days, "`N` days of a month")
	outputFlag(cmd, &o.Output)
	completeFlags(cmd)
	return cmd
}

func hedgeCostCommand(s app.Streams) *cobra.Command {
	o := app.NewHedgeCostOptions(s)
	cmd := &cobra.Command{
		Use:   "hedge [flags]",
		Short: "The most that second copies may cost",
		Long: `hedge reckons the most that hedging may cost: every copy that its share allows is
sent, and generated and billed to its end.

1,000,000 requests and 5 %: up to 1,050,000 generations.`,
		Example: `  analyze cost hedge
  analyze cost hedge --requests 250000 --share 0.02 --tokens 900 --price 15 -o json`,
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error { return app.HedgeCost(o) },
	}
	f := cmd.Flags()
	f.Uint64Var(&o.Requests, "requests", o.Requests, "`N` requests")
	f.Var(&value[app.Share]{p: &o.Share, parse: app.ParseShare, show: app.Share.Percent}, "share", "`SHARE` of them that may get a second copy: 5% or 0.05")
	spendFlags(f, &o.Tokens, &o.Price)
	outputFlag(cmd, &o.Output)
	completeFlags(cmd)
	return cmd
}

func layerCostCommand(s app.Streams) *cobra.Command {
	o := app.LayerOptions{Output: app.Output{Streams: s}}
	cmd := &cobra.Command{
		Use:   "layers [flags] [FACTORS...]",
		Short: "What layers that each retry multiply to",
		Long: `layers multiplies the attempts of layers that each retry, the outermost first: with 3
attempts of a client over 4 of an SDK, one call is 12 at worst, when all fail.

FACTORS are attempts, the first send included: 3x4 (the default), or 3 4. With names they are --layer,
which come before FACTORS.`,
		Example: `  analyze cost layers 3x4
  analyze cost layers --layer queue=2 --layer client=3 --layer sdk=3 -o json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			o.Factors = args
			return app.LayerCost(o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	layers := &value[[]app.Layer]{p: &o.Layers}
	layers.parse = func(s string) ([]app.Layer, error) {
		l, err := app.ParseLayer(s)
		return append(o.Layers, l), err
	}
	cmd.Flags().Var(layers, "layer", "`NAME=ATTEMPTS` of a layer, the outermost first; repeatable")
	outputFlag(cmd, &o.Output)
	completeFlags(cmd)
	return cmd
}

// value is a flag of any type.
type value[T any] struct {
	p     *T
	parse func(string) (T, error)
	show  func(T) string // nil = nothing to show
}

func (v *value[T]) Set(s string) error {
	parsed, err := v.parse(s)
	if err == nil {
		*v.p = parsed
	}
	return err
}

func (v *value[T]) String() string {
	if v.p == nil || v.show == nil {
		return ""
	}
	return v.show(*v.p)
}

// Type is not shown: every flag names its own.
func (v *value[T]) Type() string { return "value" }

// knob is a flag that takes the place of a preset's.
func knob[T any](p *retrylens.Opt[T], parse func(string) (T, error)) *value[retrylens.Opt[T]] {
	return &value[retrylens.Opt[T]]{p: p, parse: func(s string) (retrylens.Opt[T], error) {
		v, err := parse(s)
		return retrylens.Some(v), err
	}}
}

func parseInt(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, errors.New("no integer")
	}
	return n, nil
}
