package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"
)

// h2load is a second load generator, written by others in another language: it shows how much of a figure is about
// the first. It sends one request over and over and does not look at the answers' contents.
type h2load struct{ path, request string }

// newH2load is nil where the program is not installed.
func newH2load(dir string) (*h2load, error) {
	path, err := exec.LookPath("h2load")
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	message, err := proto.Marshal(&rls.RateLimitRequest{Domain: domain, Descriptors: []*common.RateLimitDescriptor{{
		Entries: []*common.RateLimitDescriptor_Entry{
			{Key: "endpoint_id", Value: "bench"}, {Key: "tenant", Value: "acme"},
		},
	}}})
	if err != nil {
		return nil, err
	}
	h := &h2load{path: path, request: filepath.Join(dir, "request")}
	// gRPC puts a byte for "not compressed" and the length before a message.
	framed := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	return h, os.WriteFile(h.request, framed, 0o600)
}

// run is a closed loop on one thread; it returns requests per second.
func (h *h2load) run(ctx context.Context, o options, addr string) (float64, error) {
	seconds := max(1, int(o.duration/time.Second))
	cmd := exec.CommandContext(ctx, h.path, "-t1", "-c", strconv.Itoa(o.connections), "-m", strconv.Itoa(o.streams),
		"-D", strconv.Itoa(seconds), "--warm-up-time", o.warmup.String(),
		"-H", "content-type: application/grpc", "-H", "te: trailers", "-d", h.request,
		"http://"+addr+rls.RateLimitService_ShouldRateLimit_FullMethodName)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("h2load: %w\n%s", err, out.String())
	}
	return parseH2load(out.String())
}

var (
	h2loadRate   = regexp.MustCompile(`finished in .*, ([0-9.]+) req/s`)
	h2loadStatus = regexp.MustCompile(`status codes: ([0-9]+) 2xx, 0 3xx, 0 4xx, 0 5xx`)
)

func parseH2load(out string) (float64, error) {
	rate, status := h2loadRate.FindStringSubmatch(out), h2loadStatus.FindStringSubmatch(out)
	if rate == nil || status == nil || status[1] == "0" {
		return 0, fmt.Errorf("h2load: not every answer was a success, or the report is not understood:\n%s", out)
	}
	return strconv.ParseFloat(rate[1], 64)
}
