package redistest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/redistest"
)

func TestServer_Lifecycle(t *testing.T) {
	ctx := t.Context()
	s := redistest.Start(t, redistest.Config{Password: "s3cret"})
	c := s.Client()
	if err := c.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Freeze()
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	frozen := redis.NewClient(&redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1})
	defer func() { _ = frozen.Close() }()
	if err := frozen.Ping(short).Err(); err == nil {
		t.Error("a frozen server answered")
	}
	s.Thaw()
	if got, err := c.Get(ctx, "k").Result(); err != nil || got != "v" {
		t.Errorf("after thaw: Get = %q, %v, want v", got, err)
	}
	s.Kill()
	if err := s.Client().Ping(ctx).Err(); err == nil {
		t.Error("a killed server answered")
	}
	s.Restart()
	if err := s.Client().Get(ctx, "k").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("after restart: Get: %v, want nil reply", err)
	}
}

func TestServer_SpeaksEveryTransport(t *testing.T) {
	certs := redistest.NewCertificates(t)
	for name, cfg := range map[string]redistest.Config{
		"tcp": {}, "unix socket": {Unix: true}, "tls": {TLS: certs}, "tls with password": {TLS: certs, Password: "p"},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t, cfg)
			if err := s.Client().Ping(t.Context()).Err(); err != nil {
				t.Errorf("%s: %v", s.URL(), err)
			}
		})
	}
}

func TestProxy_Weather(t *testing.T) {
	ctx := t.Context()
	s := redistest.Start(t, redistest.Config{})
	p := redistest.NewProxy(t, s.Network(), s.Addr())
	c := redis.NewClient(&redis.Options{Addr: p.Addr(), Protocol: 2, DisableIdentity: true, MaxRetries: -1})
	defer func() { _ = c.Close() }()

	took := func() time.Duration {
		start := time.Now()
		if err := c.Ping(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
	took()
	p.Delay(40 * time.Millisecond)
	if d := took(); d < 40*time.Millisecond {
		t.Errorf("with a delay of 40ms a ping took %v", d)
	}
	p.Drip(5 * time.Millisecond)
	if d := took(); d < 25*time.Millisecond { // +PONG\r\n are 7 bytes
		t.Errorf("dripping a byte each 5ms a ping took %v", d)
	}
	p.Blackhole()
	swallowed := make(chan error, 1)
	go func() { swallowed <- c.Ping(ctx).Err() }()
	select {
	case err := <-swallowed:
		t.Errorf("ping through a black hole: %v, want silence", err)
	case <-time.After(50 * time.Millisecond):
	}
	p.Cut()
	if err := <-swallowed; err == nil {
		t.Error("ping on a cut connection succeeded")
	}
	p.Heal()
	took()
}

func TestFake_Answers(t *testing.T) {
	ctx := t.Context()
	f := redistest.NewFake(t, redistest.Healthy(func(args []string) string {
		return "-LOADING the test wants it so, " + args[0] + "\r\n"
	}))
	c := redis.NewClient(&redis.Options{Addr: f.Addr(), DisableIdentity: true, MaxRetries: -1})
	defer func() { _ = c.Close() }()
	if err := c.Get(ctx, "k").Err(); !redis.IsLoadingError(err) {
		t.Errorf("Get: %v, want LOADING", err)
	}
	f.Say(func([]string) string { return redistest.HangUp })
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("Ping succeeded although the server hung up")
	}
}
