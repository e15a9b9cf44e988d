package app

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/retrylens/retrylens/retry/classify"
)

// Classify writes the classifier's answer to each case of a file ("-" = standard
// input), one JSON object a line. Bad lines are named in the error; the others
// are answered all the same.
func Classify(s Streams, path string) (err error) {
	if path == "-" {
		return classifyAll(s.Out, s.In)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: name a file of cases, one JSON object a line", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return classifyAll(s.Out, f)
}

func classifyAll(out io.Writer, in io.Reader) error {
	if err := classify.RunCases(out, in); err != nil {
		return fmt.Errorf("some cases were not answered: %w", err)
	}
	return nil
}
