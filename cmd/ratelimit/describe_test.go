package main

import (
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

func TestDescribeLimit_IsExact(t *testing.T) {
	const second, day = int64(limit.Micro), 24 * 3600 * int64(limit.Micro)
	for want, l := range map[string]limit.Limit{
		"100/s, burst 200":     limit.NewTokenBucket(200*limit.Micro, limit.Rate{Micro: 100 * limit.Micro, Period: second}),
		"3/min, burst 1.5":     limit.NewTokenBucket(1_500_000, limit.Rate{Micro: 3 * limit.Micro, Period: 60 * second}),
		"1/y, burst 1":         limit.NewTokenBucket(limit.Micro, limit.Rate{Micro: limit.Micro, Period: 365 * day}),
		"0.000001/7s, burst 1": limit.NewTokenBucket(limit.Micro, limit.Rate{Micro: 1, Period: 7 * second}),
		"1000000/s, burst 1":   limit.NewTokenBucket(limit.Micro, limit.Rate{Micro: 1e6 * limit.Micro, Period: second}),
		"2400000/s, burst 1":   limit.NewTokenBucket(limit.Micro, limit.Rate{Micro: 2_400_000_000_000_000_000, Period: 1_000_000_000_000}),
		"1000 per 1min":        limit.NewSlidingWindow(1000, time.Minute),
		"1 per 7d":             limit.NewSlidingWindow(1, 7*24*time.Hour),
		"5 per 90s":            limit.NewSlidingWindow(5, 90*time.Second),
		"5 per 250ms":          limit.NewSlidingWindow(5, 250*time.Millisecond),
	} {
		if got := describeLimit(l); got != want {
			t.Errorf("describeLimit(%+v) = %q, want %q", l, got, want)
		}
	}
}

func TestServeCmd_Warnings(t *testing.T) {
	quiet := serveCmd{redisFlags: redisFlags{Redis: "redis://h"}, Budget: 10 * time.Millisecond, GRPC: "127.0.0.1:8081", Admin: "localhost:9090"}
	for name, c := range map[string]struct {
		change func(*serveCmd)
		flag   string // "" for none
	}{
		"as it should be":                  {func(*serveCmd) {}, ""},
		"embedded store":                   {func(c *serveCmd) { c.Redis = "" }, "--redis"},
		"budget of Envoy's timeout":        {func(c *serveCmd) { c.Budget = 20 * time.Millisecond }, "--budget"},
		"plain text for everyone":          {func(c *serveCmd) { c.GRPC = "0.0.0.0:8081" }, "--grpc"},
		"plain text on all addresses":      {func(c *serveCmd) { c.GRPC = ":8081" }, "--grpc"},
		"plain text on a named host":       {func(c *serveCmd) { c.GRPC = "rls.internal:8081" }, "--grpc"},
		"plain text on IPv6 loopback":      {func(c *serveCmd) { c.GRPC = "[::1]:8081" }, ""},
		"plain text on a socket":           {func(c *serveCmd) { c.GRPC = "unix:/run/rls.sock" }, ""},
		"TLS that lets everyone in":        {func(c *serveCmd) { c.GRPC, c.GRPCCert = ":8081", "x" }, "--grpc-client-ca"},
		"mutual TLS":                       {func(c *serveCmd) { c.GRPC, c.GRPCCert, c.GRPCClientCA = ":8081", "x", "y" }, ""},
		"admin port that others can reach": {func(c *serveCmd) { c.Admin = "10.0.0.1:9090" }, "--admin"},
	} {
		flags := quiet
		c.change(&flags)
		got := flags.warnings()
		if c.flag == "" && len(got) > 0 || c.flag != "" && (len(got) != 1 || got[0].flag != c.flag) {
			t.Errorf("%s: warnings are %v, want %q", name, got, c.flag)
		}
	}
}
