package ingestd

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// fairWait is how long a connection may wait for a request however many there
// are: a sender's head comes at once.
const fairWait = 200 * time.Millisecond

// connections keeps those that only wait, for the head of a first or a next
// request, from taking the places of others: beyond its limit those that have
// waited longest, and longer than fairWait, are closed. Requests under way never
// are.
type connections struct {
	limit int

	mu      sync.Mutex
	open    int
	waiting list.List // of waiter, the longest first
	places  map[net.Conn]*list.Element
	timer   bool // relieve is due
}

type waiter struct {
	conn  net.Conn
	since time.Time
}

func newConnections(limit int) *connections {
	return &connections{limit: limit, places: map[net.Conn]*list.Element{}}
}

// changed is http.Server.ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	now := time.Now()
	c.mu.Lock()
	c.follow(now, conn, state)
	c.mu.Unlock()
	c.relieve(now)
}

// relieve closes what has to be closed now, and comes again for the rest.
func (c *connections) relieve(now time.Time) {
	c.mu.Lock()
	over, next := c.over(now)
	if next > 0 && !c.timer {
		c.timer = true
		time.AfterFunc(next, func() {
			c.mu.Lock()
			c.timer = false
			c.mu.Unlock()
			c.relieve(time.Now())
		})
	}
	c.mu.Unlock()
	for _, conn := range over {
		if t, ok := conn.(*tls.Conn); ok {
			conn = t.NetConn() // without a farewell, for which it may wait
		}
		_ = conn.Close() // its server goroutine meets the error
	}
}

func (c *connections) follow(now time.Time, conn net.Conn, state http.ConnState) {
	place, known := c.places[conn]
	if !known && state != http.StateNew {
		return // over has returned it
	}
	if place != nil {
		c.waiting.Remove(place)
		c.places[conn] = nil
	}
	switch state {
	case http.StateNew, http.StateIdle:
		if !known {
			c.open++
		}
		c.places[conn] = c.waiting.PushBack(waiter{conn, now})
	case http.StateClosed, http.StateHijacked:
		c.forget(conn)
	case http.StateActive:
	}
}

// over returns the connections to close, which it no longer knows, and how long
// until there may be more, 0 = not before something changes.
func (c *connections) over(now time.Time) (over []net.Conn, next time.Duration) {
	for c.open > c.limit && c.waiting.Len() > 0 {
		w := c.waiting.Front().Value.(waiter)
		if left := fairWait - now.Sub(w.since); left > 0 {
			return over, left
		}
		c.waiting.Remove(c.waiting.Front())
		c.forget(w.conn)
		over = append(over, w.conn)
	}
	return over, 0
}

func (c *connections) forget(conn net.Conn) {
	delete(c.places, conn)
	c.open--
}
