package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/app/cli"
)

func simulateCommand(s app.Streams) *cobra.Command {
	return group(&cobra.Command{
		Use:   "simulate",
		Short: "Play retries on virtual time: a storm of clients, a policy in an outage",
		Long: `simulate plays retries on virtual time, from a seed: the same flags give the same
figures. It needs no store.`,
		Example: `  analyze simulate storm
  analyze simulate policy --policy batch --outage 2m`,
	}, stormCommand(s), outageCommand(s))
}

// group is a command that only holds others.
func group(cmd *cobra.Command, sub ...*cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		hint := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "; did you mean " + near[0] + "?"
		}
		return &app.UsageError{Err: fmt.Errorf("unknown command %.40q%s", args[0], hint)}
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(sub...)
	return cmd
}

func stormCommand(s app.Streams) *cobra.Command {
	o := app.NewStormOptions(s)
	cmd := &cobra.Command{
		Use:   "storm [flags]",
		Short: "Clients that fail together and retry, with and without jitter",
		Long: `storm plays clients that all fail at the same instant, 0, and retry with exponential
backoff until each is served. The provider serves --capacity requests in each --step of
time (aligned to 0), the first to come; those beyond fail and back off further, twice as
long, up to --cap. A served request takes no time.

So without jitter all clients come at once, and a round serves --capacity of them: 60
clients and a capacity of 10 need six rounds, 1 + 2 + 4 + 8 + 16 + 32 = 63.0 s. With full
jitter they spread over the first second.

last client is when the last one was served, requests are all that were sent, the first
failed ones included, peak retries the most that came within one step.`,
		Example: `  analyze simulate storm
  analyze simulate storm --clients 500 --capacity 20 --base 500ms --cap 20s
  analyze simulate storm --jitter none,full --seed 7 -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return app.Storm(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.IntVar(&o.Clients, "clients", o.Clients, "`N` clients that fail together")
	f.IntVar(&o.Capacity, "capacity", o.Capacity, "`N` requests that the provider serves in each --step")
	f.DurationVar(&o.Step, "step", o.Step, "`DURATION` of the window that --capacity is for")
	f.DurationVar(&o.Base, "base", o.Base, "`DURATION` that the backoff begins with")
	f.DurationVar(&o.Cap, "cap", o.Cap, "`DURATION` that the backoff does not exceed")
	jitterFlag(f, &o.Jitters)
	f.Uint64Var(&o.Seed, "seed", o.Seed, "`N`; another seed gives other figures")
	outputFlag(cmd, &o.Output)
	completeFlags(cmd)
	return cmd
}

func outageCommand(s app.Streams) *cobra.Command {
	o := app.NewOutageOptions(s)
	cmd := &cobra.Command{
		Use:   "policy [flags]",
		Short: "A retry policy in an outage: calls, completion times, tokens",
		Long: `policy runs the real policy engine (docs/policy.md) on virtual time: one process starts
operations at one provider, and for the time of an outage a share of its calls fails.
Retry budget, breaker and bulkhead are the engine's.

There is a line for each --jitter, where failures ask for no wait; then, with full
jitter, failures ask for --retry-after, once clamped to --cap, once obeyed (more than
the cap ends the operation).

A good call takes --service-time, a failed one --fail-time. A call without answer
within the attempt timeout (--failure timeout, or a longer --service-time) is generated
and billed, and nobody reads it: orphaned. p50 and p99 are the time from the start of
an operation to its answer, of the delivered ones.`,
		Example: `  analyze simulate policy
  analyze simulate policy --policy batch --outage 2m --failure-rate 1 --failure overloaded
  analyze simulate policy --failure timeout --attempt-timeout 10s --tokens 1800 --price 3
  analyze simulate policy --no-breaker --retry-budget 1000000 --capacity 30 -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return app.SimulateOutage(cmd.Context(), o) },
	}
	policyFlags(cmd, &o)
	outageFlags(cmd, &o)
	outputFlag(cmd, &o.Output)
	completeFlags(cmd)
	return cmd
}

func policyFlags(cmd *cobra.Command, o *app.OutageOptions) {
	f := cmd.Flags()
	f.StringVar(&o.Preset, "policy", o.Preset, "`NAME` of the preset: "+strings.Join(app.Presets, " or "))
	f.Var(knob(&o.Attempts, parseInt), "attempts", "`N` attempts of an operation, the first included (default: the preset's)")
	f.Var(knob(&o.Base, time.ParseDuration), "base", "`DURATION` that the backoff begins with (default: the preset's)")
	f.Var(knob(&o.Cap, time.ParseDuration), "cap", "`DURATION` that backoff and Retry-After are clamped to (default: the preset's)")
	f.Var(knob(&o.WallClockBudget, time.ParseDuration), "wall-clock-budget", "`DURATION` of an operation after which no attempt starts (default: the preset's)")
	f.Var(knob(&o.AttemptTimeout, time.ParseDuration), "attempt-timeout", "`DURATION` that an attempt may take (default: the preset's)")
	f.Float64Var(&o.Limits.RetryBudget.Tokens, "retry-budget", o.Limits.RetryBudget.Tokens, "`N` tokens of the retry budget")
	f.IntVar(&o.Limits.Bulkhead.Limit, "bulkhead", o.Limits.Bulkhead.Limit, "`N` calls in flight at most")
	f.BoolVar(&o.NoBreaker, "no-breaker", false, "never open the breaker")
	f.BoolVar(&o.Unkeyed, "unkeyed", false, "operations without idempotency key: no retry after bytes may have left")
	jitterFlag(f, &o.Jitters)
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(app.Presets, cobra.ShellCompDirectiveNoFileComp))
}

func outageFlags(cmd *cobra.Command, o *app.OutageOptions) {
	f := cmd.Flags()
	f.Float64Var(&o.Rate, "rate", o.Rate, "`N` operations a second, in the mean")
	f.DurationVar(&o.Duration, "duration", o.Duration, "`DURATION` in which operations start")
	f.DurationVar(&o.OutageAt, "outage-at", o.OutageAt, "`DURATION` before the outage")
	f.DurationVar(&o.Outage, "outage", o.Outage, "`DURATION` of the outage")
	f.Float64Var(&o.FailureRate, "failure-rate", o.FailureRate, "`SHARE` of the calls in the outage that fail, 0..1")
	f.StringVar(&o.FailureName, "failure", o.FailureName, "`CLASS` of failures: "+strings.Join(app.FailureNames(), ", "))
	f.DurationVar(&o.RetryAfter, "retry-after", o.RetryAfter, "`DURATION`, whole seconds, that failures ask for in clamp against obey; 0s: leave those out")
	f.DurationVar(&o.ServiceTime, "service-time", o.ServiceTime, "`DURATION` of a good call")
	f.DurationVar(&o.FailTime, "fail-time", o.FailTime, "`DURATION` of a failed call")
	f.IntVar(&o.Capacity, "capacity", o.Capacity, "`N` calls at once that the provider takes, those beyond fail; 0: any number")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "`N`; another seed gives other figures")
	spendFlags(f, &o.Tokens, &o.Price)
	_ = cmd.RegisterFlagCompletionFunc("failure", cobra.FixedCompletions(app.FailureNames(), cobra.ShellCompDirectiveNoFileComp))
}

func jitterFlag(f *pflag.FlagSet, names *[]string) {
	f.StringSliceVar(names, "jitter", *names, "`NAMES`, comma-separated, of the jitters to compare")
}

func outputFlag(cmd *cobra.Command, o *app.Output) {
	cmd.Flags().StringVarP(&o.Format, "output", "o", "table", "`FORMAT`: table or json (exact)")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(app.ArithmeticFormats, cobra.ShellCompDirectiveNoFileComp))
}

// spendFlags are tokens of a call and their price.
func spendFlags(f *pflag.FlagSet, tokens *uint64, price *retrylens.Money) {
	f.Uint64Var(tokens, "tokens", *tokens, "`N` tokens of one generation")
	f.Var(&value[retrylens.Money]{p: price, parse: retrylens.ParseMoney[string], show: trimmed}, "price", "`USD` per million tokens, exact")
}

// trimmed writes an amount without the zeros at its end.
func trimmed(m retrylens.Money) string {
	return strings.TrimSuffix(strings.TrimRight(m.String(), "0"), ".")
}

// completeFlags has flags without a completion of their own not complete files.
func completeFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions) // an error where there is one
	})
}
