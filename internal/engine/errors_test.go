package engine

import (
	"errors"
	"fmt"
	"testing"
)

func TestExitCodesThereAndBack(t *testing.T) {
	seen := map[int]bool{ExitOK: true, ExitFailure: true}
	for _, e := range exits {
		if seen[e.code] {
			t.Errorf("code %d is there twice", e.code)
		}
		seen[e.code] = true
		err := FromExit(ExitCode(fmt.Errorf("wrapped: %w", e.err)), "what it said")
		if !errors.Is(err, e.err) || err.Error() != "what it said" {
			t.Errorf("%v came back as %v", e.err, err)
		}
	}
	if got := ExitCode(errors.New("other")); got != ExitFailure {
		t.Errorf("another error has code %d", got)
	}
	if got := ExitCode(nil); got != ExitOK {
		t.Errorf("no error has code %d", got)
	}
	if err := FromExit(-1, "killed"); err == nil {
		t.Error("an unknown code is no error")
	}
}
