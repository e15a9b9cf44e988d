package main

import (
	"github.com/spf13/cobra"

	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/app/cli"
)

func rulesCommand(s app.Streams) *cobra.Command {
	return group(&cobra.Command{
		Use:   "rules",
		Short: "Check and test alert rules",
		Long:  "rules checks files of alert rules (docs/alerts.md) and tests them with scripts of attempts.",
		Example: `  analyze rules check rules.yml
  analyze rules test --rules rules.yml rules_test.yml`,
	}, rulesCheckCommand(s), rulesTestCommand(s), rulesDefaultCommand(s))
}

func rulesCheckCommand(s app.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "check FILE...",
		Short:   "Say what is wrong in files of rules",
		Long:    "check reads files of rules and names each fault with its line. Exit code 2: there are some.",
		Example: `  analyze rules check rules.yml`,
		Args:    cli.SomeArgs("file"),
		RunE:    func(_ *cobra.Command, args []string) error { return app.CheckRules(s, args) },
	}
}

func rulesTestCommand(s app.Streams) *cobra.Command {
	rules := ""
	cmd := &cobra.Command{
		Use:   "test [flags] SCRIPT...",
		Short: "Play scripts of attempts against rules",
		Long: `test plays scripts (docs/alerts.md): attempts, the detector's verdicts, and the alerts
that must fire, or must not, at which time. Time is the script's own. Exit code 1: an
expectation was not met.`,
		Example: `  analyze rules default --test > default_test.yml && analyze rules test default_test.yml
  analyze rules test --rules rules.yml rules_test.yml`,
		Args: cli.SomeArgs("script"),
		RunE: func(cmd *cobra.Command, args []string) error { return app.TestRules(cmd.Context(), s, rules, args) },
	}
	cmd.Flags().StringVar(&rules, "rules", "", "`FILE` of rules (default: those of analyze rules default)")
	return cmd
}

func rulesDefaultCommand(s app.Streams) *cobra.Command {
	script := false
	cmd := &cobra.Command{
		Use:     "default [flags]",
		Short:   "Print the rules that analyze serve comes with",
		Example: `  analyze rules default > rules.yml`,
		Args:    cli.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return app.PrintDefaultRules(s.Out, script) },
	}
	cmd.Flags().BoolVar(&script, "test", false, "print the script that tests them instead")
	return cmd
}
