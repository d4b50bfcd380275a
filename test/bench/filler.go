package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	// fillerCallers ask at the same time, for fillerBuckets each.
	fillerCallers = 4
	fillerBuckets = 50
)

// filler makes buckets by asking for them.
type filler struct {
	conn   *grpc.ClientConn
	client rls.RateLimitServiceClient
}

func newFiller(addr string) (*filler, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return &filler{conn: conn, client: rls.NewRateLimitServiceClient(conn)}, nil
}

func (f *filler) close() { _ = f.conn.Close() } // nothing is in flight any more

// fill asks once for each tenant from t0 to t(keys-1).
func (f *filler) fill(ctx context.Context, keys int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var callers sync.WaitGroup
	for range fillerCallers {
		callers.Go(func() {
			for ctx.Err() == nil {
				from := int(next.Add(fillerBuckets)) - fillerBuckets
				if from >= keys {
					return
				}
				if err := f.ask(ctx, from, min(from+fillerBuckets, keys)); err != nil {
					cancel(err)
				}
			}
		})
	}
	callers.Wait()
	return context.Cause(ctx)
}

// ask repeats a request that the store was too slow for: a bucket charged twice is a bucket as well.
func (f *filler) ask(ctx context.Context, from, to int) error {
	r := &rls.RateLimitRequest{Domain: domain}
	for i := from; i < to; i++ {
		r.Descriptors = append(r.Descriptors, &common.RateLimitDescriptor{Entries: []*common.RateLimitDescriptor_Entry{
			{Key: "endpoint_id", Value: "bench"}, {Key: "tenant", Value: "t" + strconv.Itoa(i)},
		}})
	}
	const attempts = 100
	var errs []error
	for range attempts {
		answer, err := f.client.ShouldRateLimit(ctx, r)
		if err == nil && answer.GetOverallCode() == rls.RateLimitResponse_OK {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("the answer is %v", answer.GetOverallCode())
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs[max(0, len(errs)-3):]...)
}
