//go:build !linux

package host

import (
	"errors"

	"github.com/retrylens/retrylens/internal/engine/datadir"
)

// confine is for Linux.
func confine(datadir.Dir) error { return errors.ErrUnsupported }
