package world

import (
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/sim/failure"
)

// request is what one operation asks for, whoever sends it and however often.
type request struct {
	key                int64 // 0 = unkeyed
	model              string
	prompt, completion int64
	stream             bool
	failedZones        uint8 // of the provider, under this key
}

// call is one request on its way to the next layer, which fills in the reply and
// tells whoever waits for it. A call belongs to its sender, who may use it again once
// it has ended.
type call struct {
	intent   *intent
	cause    retrylens.Cause // of the record that this call would be on the other side
	patience time.Duration   // after which the sender leaves: to the head of a stream, to the end of anything else
	back     receiver
	reply    reply
}

// receiver is told that its call has ended, now.
type receiver interface{ ended(c *call) }

// upstream is the next layer.
type upstream interface{ send(c *call) }

// reply is what came of a call.
type reply struct {
	failure   *failure.Reply // nil = the whole answer
	calls     int            // requests that were written on behalf of this one
	ttfb      time.Duration  // from the sending to the first byte; below 0 = none
	requestID uint64         // 0 = none
	usage     usage
	servedBy  retrylens.Opt[int32] // attempt of the gateway that answered
	// unheard is when the provider will have finished what its caller did not wait
	// for; 0 = it never will.
	unheard time.Duration
}

// usage is what an answer took.
type usage struct {
	known, partial     bool
	prompt, completion int64
}

func (q *request) usage() usage {
	return usage{known: true, prompt: q.prompt, completion: q.completion}
}
