package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/honestlimit/ratelimit/test/process"
)

// tenants is how many buckets the load is spread over.
const tenants = 1000

// sample is one scenario in one round.
type sample struct {
	perSecond           float64
	p50, p99, p999, max time.Duration
	// ok, overLimit and refused are the answers: 200, 429 and 503 behind Envoy. failed is any other gRPC error.
	ok, overLimit, refused, failed int
}

// connections is the load generator: a closed loop, each worker sends its next request when it has its answer.
type connections []*grpc.ClientConn

func dial(ctx context.Context, addr string, n int) (connections, error) {
	var all connections
	for range n {
		c, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		all = append(all, c)
	}
	return all, nil
}

func (c connections) close() error {
	var errs []error
	for _, conn := range c {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// warm sends requests until the store answers them.
func (c connections) warm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return process.Await(ctx, "the store's first decisions", func(ctx context.Context) error {
		for _, conn := range c {
			if _, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, request(0)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c connections) load(ctx context.Context, streams int, d time.Duration) sample {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	workers := make([]worker, len(c)*streams)
	start := time.Now()
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() { workers[i].run(ctx, c[i%len(c)], i) })
	}
	wg.Wait()
	return sum(workers, time.Since(start))
}

// worker is one concurrent caller and what it saw.
type worker struct {
	took []time.Duration
	seen sample
}

func (w *worker) run(ctx context.Context, conn *grpc.ClientConn, seed int) {
	client := rls.NewRateLimitServiceClient(conn)
	for i := seed; ctx.Err() == nil; i++ {
		start := time.Now()
		// The end of the run must not cut a request short, so it does not bound the call.
		resp, err := client.ShouldRateLimit(context.WithoutCancel(ctx), request(i%tenants))
		w.took = append(w.took, time.Since(start))
		switch {
		case err == nil && resp.GetOverallCode() == rls.RateLimitResponse_OK:
			w.seen.ok++
		case err == nil:
			w.seen.overLimit++
		case status.Code(err) == codes.FailedPrecondition:
			w.seen.refused++
		default:
			w.seen.failed++
		}
	}
}

func request(tenant int) *rls.RateLimitRequest {
	return &rls.RateLimitRequest{Domain: "bench", Descriptors: []*common.RateLimitDescriptor{{
		Entries: []*common.RateLimitDescriptor_Entry{
			{Key: "endpoint_id", Value: "bench"}, {Key: "tenant", Value: strconv.Itoa(tenant)},
		},
	}}}
}

func sum(workers []worker, took time.Duration) sample {
	var total sample
	var all []time.Duration
	for _, w := range workers {
		all = append(all, w.took...)
		total.ok += w.seen.ok
		total.overLimit += w.seen.overLimit
		total.refused += w.seen.refused
		total.failed += w.seen.failed
	}
	slices.Sort(all)
	at := func(q float64) time.Duration { return all[min(len(all)-1, int(q*float64(len(all))))] }
	total.perSecond = float64(len(all)) / took.Seconds()
	total.p50, total.p99, total.p999, total.max = at(0.5), at(0.99), at(0.999), all[len(all)-1]
	return total
}
