package ingestd

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// connections keeps those that only wait, for the head of a first or a next
// request, from taking the places of others: beyond its limit the one that has
// waited longest is closed. Requests under way never are.
type connections struct {
	limit int

	mu      sync.Mutex
	open    int
	waiting list.List // of net.Conn, the longest first
	places  map[net.Conn]*list.Element
}

func newConnections(limit int) *connections {
	return &connections{limit: limit, places: map[net.Conn]*list.Element{}}
}

// changed is http.Server.ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	oldest := c.follow(conn, state)
	c.mu.Unlock()
	if oldest == nil {
		return
	}
	if t, ok := oldest.(*tls.Conn); ok {
		oldest = t.NetConn() // without a farewell, for which it may wait
	}
	_ = oldest.Close() // its server goroutine meets the error
}

// follow returns the connection to close, nil = none. One that it returned it
// no longer knows.
func (c *connections) follow(conn net.Conn, state http.ConnState) (oldest net.Conn) {
	place, known := c.places[conn]
	if !known && state != http.StateNew {
		return nil
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
		c.places[conn] = c.waiting.PushBack(conn)
	case http.StateClosed, http.StateHijacked:
		c.forget(conn)
	case http.StateActive:
	}
	front := c.waiting.Front()
	if c.open <= c.limit || front == nil {
		return nil
	}
	oldest = c.waiting.Remove(front).(net.Conn)
	c.forget(oldest)
	return oldest
}

func (c *connections) forget(conn net.Conn) {
	delete(c.places, conn)
	c.open--
}
