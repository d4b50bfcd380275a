package sentinel

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
)

// errAccess is about credentials. Its text must not come from the server, which may quote what it was sent.
var errAccess = errors.New("access denied")

// wire is one connection to a Sentinel, in Redis' protocol of version 2. A client library's would have done, but for
// two things: what a Sentinel sends is bounded here, and nothing waits without a deadline. Not safe for concurrent use.
type wire struct {
	net     net.Conn
	r       *bufio.Reader
	timeout time.Duration
	unwatch func() bool
}

// connect dials the Sentinel and logs in. Every step is over after timeout; the end of ctx closes the connection.
func connect(ctx context.Context, target redisstore.Target, timeout time.Duration) (*wire, error) {
	conn, err := dial(ctx, target, timeout)
	if err != nil {
		return nil, err
	}
	w := &wire{net: conn, r: bufio.NewReaderSize(conn, maxLine), timeout: timeout}
	w.unwatch = context.AfterFunc(ctx, func() { _ = conn.Close() })
	if err := w.login(target); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func dial(ctx context.Context, target redisstore.Target, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, target.Network, target.Address)
	if err != nil || target.TLS == nil {
		return conn, err
	}
	secure := tls.Client(conn, target.TLS)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return secure, nil
}

func (w *wire) close() {
	w.unwatch()
	_ = w.net.Close() // a broken connection cannot do more than be forgotten
}

func (w *wire) login(target redisstore.Target) error {
	if target.Password == "" {
		return nil
	}
	command := []string{"AUTH", string(target.Password)}
	if target.Username != "" {
		command = []string{"AUTH", target.Username, string(target.Password)}
	}
	replies, err := w.ask(command)
	if err != nil {
		return err
	}
	no, refused := replies[0].(refusal)
	switch {
	case !refused:
		return nil
	case no.is("WRONGPASS"):
		return fmt.Errorf("%w: the user or the password is wrong (WRONGPASS)", errAccess)
	default:
		return fmt.Errorf("%w: AUTH is refused; perhaps no password is configured at the Sentinel", errAccess)
	}
}

// ask sends commands in one piece and returns their replies: string, int64, nil, refusal or a slice of these.
func (w *wire) ask(commands ...[]string) ([]any, error) {
	if err := w.send(commands...); err != nil {
		return nil, err
	}
	replies := make([]any, len(commands))
	for i := range replies {
		var err error
		if replies[i], err = readReply(w.r); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// send gives the commands and their replies the time from now.
func (w *wire) send(commands ...[]string) error {
	if err := w.net.SetDeadline(time.Now().Add(w.timeout)); err != nil {
		return err
	}
	var b []byte
	for _, words := range commands {
		b = fmt.Appendf(b, "*%d\r\n", len(words))
		for _, word := range words {
			b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	_, err := w.net.Write(b)
	return err
}

// next waits for what a subscription brings. One that was silent for patience is pinged; it fails if it does not answer
// in time, as a peer that lost its power would not.
func (w *wire) next(patience time.Duration) (any, error) {
	if err := w.await(patience); err == nil || !isTimeout(err) {
		return w.receive(err)
	}
	if err := w.send([]string{"PING"}); err != nil {
		return nil, err
	}
	return w.receive(nil)
}

// receive reads a reply that has begun, or is due.
func (w *wire) receive(err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if err := w.net.SetReadDeadline(time.Now().Add(w.timeout)); err != nil {
		return nil, err
	}
	return readReply(w.r)
}

// await waits for the first byte and leaves it where it is, so that running out of time breaks nothing.
func (w *wire) await(patience time.Duration) error {
	if err := w.net.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := w.r.Peek(1)
	return err
}

func isTimeout(err error) bool {
	var slow net.Error
	return errors.As(err, &slow) && slow.Timeout()
}
