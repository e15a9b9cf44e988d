package alerts

import (
	_ "embed"
	"strings"
)

//go:embed default.yml
var defaultRules string

// DefaultRules are those that analyze serve comes with.
func DefaultRules() *Rules {
	r, err := Load("default.yml", strings.NewReader(defaultRules))
	if err != nil {
		panic(err) // a test loads them
	}
	return r
}

// DefaultRulesYAML is their text.
func DefaultRulesYAML() string { return defaultRules }

//go:embed default_test.yml
var defaultRulesTest string

// DefaultRulesTest is the script that tests them.
func DefaultRulesTest() string { return defaultRulesTest }
