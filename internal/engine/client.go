package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/retrylens/retrylens/internal/engine/datadir"
)

// Database is the database that every engine has.
const Database = datadir.Database

// Endpoint is where an engine answers, and as whom to log in.  The addresses and
// the PID are those of this moment; the rest stays for a data directory.
type Endpoint struct {
	HTTPAddr string // host:port
	TCPAddr  string // host:port, native protocol
	User     string
	Password string
	Database string
	PID      int
	Version  string // of ClickHouse
}

// A Client is this process's registration with the engine of one data directory.
// While it is open the engine stays.  It is safe for concurrent use.
type Client struct {
	opts   Options
	dir    datadir.Dir
	pw     datadir.Passwords
	member *datadir.Lock
	closed chan struct{}
	once   sync.Once
	dialer net.Dialer

	turn    chan struct{} // held by the one who starts an engine
	backoff backoff       // guarded by turn
}

// Open registers this process as a client of the engine in o.Dir and makes sure
// that one runs and answers.  An engine that is just leaving is waited for, and a
// new one started.
func Open(ctx context.Context, o Options) (*Client, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	d, pw, err := o.prepare()
	if err != nil {
		return nil, err
	}
	c := &Client{
		opts:    o,
		dir:     d,
		pw:      pw,
		closed:  make(chan struct{}),
		turn:    make(chan struct{}, 1),
		backoff: backoff{min: o.MinBackoff, max: o.MaxBackoff},
	}
	if err := c.join(ctx); err != nil {
		return nil, err
	}
	if _, err := c.ensure(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Client) join(ctx context.Context) error {
	ctx, cancel := c.withTimeout(ctx, "wait for the engine that is leaving "+string(c.dir))
	defer cancel()
	var err error
	c.member, err = c.dir.JoinClients(ctx)
	return err
}

// withTimeout bounds ctx by StartTimeout; its cause is then an ErrTimeout that
// says what was waited for.
func (c *Client) withTimeout(ctx context.Context, what string) (context.Context, context.CancelFunc) {
	cause := fmt.Errorf("%w: waited %v to %s; see %s", ErrTimeout, c.opts.StartTimeout, what, c.dir.EngineLog())
	return context.WithTimeoutCause(ctx, c.opts.StartTimeout, cause)
}

// Close ends the registration.  The engine stays as long as it has other clients,
// and a while longer.  A second call does nothing.
func (c *Client) Close() error {
	var err error
	c.once.Do(func() {
		close(c.closed)
		err = errors.Join(c.dir.TouchClients(), c.member.Release())
	})
	return err
}

// Endpoint is where the engine answers now, for the user that owns Database.  If
// the engine is gone a new one is started.
func (c *Client) Endpoint(ctx context.Context) (Endpoint, error) {
	s, err := c.ensure(ctx)
	return endpoint(s, datadir.User, c.pw.User), err
}

// ViewerEndpoint is Endpoint for the user that may only read.
func (c *Client) ViewerEndpoint(ctx context.Context) (Endpoint, error) {
	s, err := c.ensure(ctx)
	return endpoint(s, datadir.Viewer, c.pw.Viewer), err
}

func endpoint(s datadir.State, user, password string) Endpoint {
	return Endpoint{
		HTTPAddr: s.HTTPAddr,
		TCPAddr:  s.TCPAddr,
		User:     user,
		Password: password,
		Database: datadir.Database,
		PID:      s.PID,
		Version:  s.Version,
	}
}

// DialTCP connects to the engine's native port.  If the engine has crashed or was
// stopped it starts a new one, with backoff if that happens often.
func (c *Client) DialTCP(ctx context.Context) (net.Conn, error) {
	return c.dial(ctx, func(s datadir.State) string { return s.TCPAddr })
}

// DialHTTP is DialTCP for the HTTP port.
func (c *Client) DialHTTP(ctx context.Context) (net.Conn, error) {
	return c.dial(ctx, func(s datadir.State) string { return s.HTTPAddr })
}

func (c *Client) dial(ctx context.Context, addr func(datadir.State) string) (net.Conn, error) {
	ctx, cancel := c.withTimeout(ctx, "reach the engine in "+string(c.dir))
	defer cancel()
	for {
		s, err := c.ensure(ctx)
		if err != nil {
			return nil, err
		}
		conn, err := c.dialer.DialContext(ctx, "tcp", addr(s))
		if err == nil {
			return conn, nil
		}
		// It died or is stopping; until that shows its address is still there.
		if perr := datadir.Pause(ctx); perr != nil {
			return nil, fmt.Errorf("%w (last: %w)", perr, err)
		}
	}
}

// ensure returns the state of an engine that is ready, starting one if need be.
func (c *Client) ensure(ctx context.Context) (datadir.State, error) {
	if c.isClosed() {
		return datadir.State{}, ErrClosed
	}
	if l, s, err := c.dir.Look(); err != nil || l == datadir.Ready {
		return s, err
	}
	ctx, cancel := c.withTimeout(ctx, "have the engine answer in "+string(c.dir))
	defer cancel()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
		return c.startIfDead(ctx)
	case <-ctx.Done():
		return datadir.State{}, context.Cause(ctx)
	}
}

func (c *Client) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// startIfDead waits for an engine that starts or stops, and starts one when there
// is none.  The caller has the turn.
func (c *Client) startIfDead(ctx context.Context) (datadir.State, error) {
	for {
		l, s, err := c.dir.Look()
		if err != nil || l == datadir.Ready {
			return s, err
		}
		if l == datadir.Dead {
			if err := c.start(ctx); err != nil && !c.lostRace(err) {
				return s, err
			}
			continue
		}
		if err := datadir.Pause(ctx); err != nil {
			return s, err
		}
	}
}

// lostRace tells whether a start failed because another process was faster.
func (c *Client) lostRace(err error) bool {
	if !errors.Is(err, ErrLocked) {
		return false
	}
	lives, lerr := c.dir.EngineLives()
	return lerr == nil && lives
}

// start starts an engine.  If it had to wait first it leaves that to the next round:
// meanwhile another process may have done it.
func (c *Client) start(ctx context.Context) error {
	if wait := c.backoff.next(time.Now()); wait > 0 {
		c.opts.Logger.Warn("engine is gone again; waiting before the next start", "dir", c.dir, "wait", wait)
		return sleep(ctx, wait)
	}
	c.backoff.started(time.Now())
	return launch(ctx, c.opts, c.dir)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
