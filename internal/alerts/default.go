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
