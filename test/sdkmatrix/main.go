package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	s := matrix(ctx)
	stop()
	line, err := json.Marshal(s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sdkmatrix:", err)
		os.Exit(1)
	}
	fmt.Println(string(line))
	if s.Failed > 0 {
		os.Exit(1)
	}
}

// summary is the JSON line.
type summary struct {
	Cells    int      `json:"cells"`
	Passed   int      `json:"passed"`
	Failed   int      `json:"failed"`
	Requests int      `json:"requests"` // that the servers counted
	Calls    int      `json:"calls"`    // that the records count
	Tokens   [2]int64 `json:"tokens"`   // that the servers reported: prompt, completion
	Recorded [2]int64 `json:"recorded"` // of the records
	SDKs     []string `json:"sdks"`
	Bad      []cell   `json:"bad,omitempty"`
}

func matrix(ctx context.Context) (s summary) {
	for _, k := range sdks {
		s.SDKs = append(s.SDKs, k.name)
		for _, sc := range scenarios {
			if sc.onlyIfTold && !k.counts {
				continue
			}
			s.add(run(ctx, k, sc))
		}
	}
	return s
}

func (s *summary) add(c cell) {
	s.Cells++
	s.Requests += c.Requests
	s.Calls += c.Calls
	for i := range c.Tokens {
		s.Tokens[i] += c.Tokens[i]
		s.Recorded[i] += c.Recorded[i]
	}
	if len(c.Problems) > 0 {
		s.Failed++
		s.Bad = append(s.Bad, c)
		return
	}
	s.Passed++
}
