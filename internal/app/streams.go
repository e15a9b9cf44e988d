package app

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"

	"github.com/retrylens/retrylens/internal/render"
)

// Streams are the standard streams of a command.
type Streams struct {
	In  io.Reader
	Out io.Writer // data
	Err io.Writer // everything else
}

// screen tells how wide w is and whether it takes colours: those are for a
// terminal, and not with NO_COLOR in the environment.
func screen(w io.Writer, getenv func(string) string) render.Screen {
	fd, ok := terminal(w)
	if !ok {
		return render.Screen{}
	}
	width, _, err := term.GetSize(fd)
	if err != nil {
		width = 0
	}
	return render.Screen{Width: width, Color: getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

func isTerminal(w io.Writer) bool {
	_, ok := terminal(w)
	return ok
}

func terminal(w io.Writer) (int, bool) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	return int(f.Fd()), true
}

// newLogger is a service's log, to s.Err.
func newLogger(s Streams, asJSON, verbose bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if verbose {
		options.Level = slog.LevelDebug
	}
	w := s.Err
	if w == nil {
		w = io.Discard
	}
	if asJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
