package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// pollInterval is how often Await looks again.
const pollInterval = 20 * time.Millisecond

// Await looks until check returns nil, and at most until ctx ends; its error then says what was awaited and what
// check said last.
func Await(ctx context.Context, what string, check func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process: waited for %s: %w, last seen: %w", what, ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// AwaitReady is Await that gives up as soon as the child has ended.
func (p *Process) AwaitReady(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-p.done:
			cancel(ErrExited)
		case <-stop:
		}
	}()
	if err := Await(ctx, p.name, check); err != nil {
		if exited := p.Exited(); exited != nil {
			return exited
		}
		return fmt.Errorf("%w, its last words:\n%s", err, p.Tail())
	}
	return nil
}

// HTTPOK checks that url answers 200.
func HTTPOK(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, resp.Status)
		}
		return nil
	}
}

// Listens checks that something accepts connections on the TCP address addr.
func Listens(addr string) func(context.Context) error {
	return func(ctx context.Context) error {
		dialer := net.Dialer{Timeout: time.Second}
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}
