package effects

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/retrylens/retrylens/retry/fingerprint"
	"github.com/retrylens/retrylens/retry/keys"
)

// Message is something to be sent once a transaction has committed.
type Message struct {
	Key     string // idempotency key, 1..255 bytes; the receiver gets it with every dispatch
	Topic   string // which handler, 1..128 bytes
	Payload []byte

	// Attempt numbers the dispatches of the message from 1. Enqueue takes no notice of it. It
	// only grows, so a receiver can refuse what comes from an owner that was too slow.
	Attempt int
	// LastError of a message that was set aside.
	LastError string
	// CreatedAt is when it was enqueued. Enqueue takes no notice of it.
	CreatedAt time.Time
}

// Enqueue writes the message in the caller's transaction: it exists exactly if that commits. It
// tells whether the message is new: a key that is in the outbox already, sent or not, is a
// repeat and changes nothing; with another topic or payload it is ErrConflict. Like
// Once it waits for another transaction that has the key.
func (s *Store) Enqueue(ctx context.Context, tx *sql.Tx, m Message) (enqueued bool, err error) {
	if err := checkKey(m.Key); err != nil {
		return false, err
	}
	if err := checkName("Message.Topic", m.Topic); err != nil {
		return false, err
	}
	began := s.timer.Now()
	in := intent{key: m.Key, name: m.Topic, fingerprint: keys.Derive(m.Topic, fingerprint.Body(m.Payload)), logicalID: logicalID(ctx, m.Key)}
	gap("enqueue.begin")
	for done := false; !done; {
		enqueued, done, err = s.enqueue(ctx, tx, m, in, began)
		if err != nil {
			return false, fmt.Errorf("effects: enqueue: %w", err)
		}
	}
	gap("enqueue.inserted")
	return enqueued, nil
}

// enqueue is one round: not done if the key was pruned between being found taken and being read.
func (s *Store) enqueue(ctx context.Context, tx *sql.Tx, m Message, in intent, began time.Time) (enqueued, done bool, err error) {
	n, err := s.exec(ctx, tx, `INSERT INTO retrylens_outbox (key, topic, payload, fingerprint, state, due_ms, logical_id, created_ms)
		VALUES ($1, $2, $3, $4, 'ready', {now}, $5, {now}) ON CONFLICT DO NOTHING`, m.Key, m.Topic, bytes(m.Payload), in.fingerprint, in.logicalID)
	if held(err) {
		err = &KeyError{Key: m.Key, Tool: m.Topic, Err: fmt.Errorf("%w: %w", ErrInFlight, err), Hint: "roll back and try the transaction again"}
	}
	if err != nil || n == 1 {
		return n == 1, true, err
	}
	kept := in
	found, err := s.one(ctx, tx, `SELECT fingerprint, logical_id, created_ms FROM retrylens_outbox WHERE key = $1`,
		[]any{m.Key}, &kept.fingerprint, &kept.logicalID, &kept.createdMS)
	if err != nil || !found {
		return false, false, err
	}
	if kept.fingerprint != in.fingerprint {
		return false, false, fmt.Errorf("%w: key %.64q of topic %q", ErrConflict, m.Key, m.Topic)
	}
	kept.fingerprint = fingerprint.Body(m.Payload)
	s.replayed(ctx, kept, began)
	return false, true, nil
}

// SetAside lists messages that were set aside, oldest first, at most limit.
func (s *Store) SetAside(ctx context.Context, limit int) ([]Message, error) {
	var out []Message
	err := s.each(ctx, s.o.DB, `SELECT key, topic, payload, attempts, last_error, created_ms FROM retrylens_outbox
		WHERE state = 'set_aside' ORDER BY id LIMIT $1`, []any{limit}, func() { out = nil }, func(rows *sql.Rows) error {
		var m Message
		var created int64
		err := rows.Scan(&m.Key, &m.Topic, &m.Payload, &m.Attempt, &m.LastError, &created)
		m.CreatedAt = time.UnixMilli(created)
		out = append(out, m)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("effects: %w", err)
	}
	return out, nil
}

// Requeue makes a message that was set aside due again, with all its attempts before it: after
// what made it fail is mended. Requeueing one whose receiver may have forgotten the key
// can send it twice. A key that is not set aside is an error.
func (s *Store) Requeue(ctx context.Context, key string) error {
	n, err := s.exec(ctx, s.o.DB, `UPDATE retrylens_outbox SET state = 'ready', spent = attempts, called_ms = 0, settled_ms = 0, due_ms = {now}
		WHERE key = $1 AND state = 'set_aside'`, key)
	if err != nil {
		return fmt.Errorf("effects: requeue: %w", err)
	}
	if n == 0 {
		return fmt.Errorf("effects: requeue: no message with key %.64q is set aside; SetAside lists those that are", key)
	}
	return nil
}
