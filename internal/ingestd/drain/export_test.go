package drain

import "github.com/retrylens/retrylens/internal/spool"

// SetFS puts faults between the dead letters and the disk.
func (f *DeadLetters) SetFS(fs spool.FS) { f.fs = fs }
