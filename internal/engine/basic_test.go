package engine_test

import (
	"testing"

	"github.com/retrylens/retrylens/internal/engine/enginetest"
)

func TestOpenAnswers(t *testing.T) {
	conn := connect(t, enginetest.Shared(t))
	if got := scalar[string](t, conn, "SELECT currentUser()"); got != "retrylens" {
		t.Errorf("currentUser() = %q", got)
	}
	if got := scalar[string](t, conn, "SELECT timezone()"); got != "UTC" {
		t.Errorf("timezone() = %q", got)
	}
}
