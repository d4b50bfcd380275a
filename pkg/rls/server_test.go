package rls_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/pkg/policy"
	"github.com/honestlimit/ratelimit/pkg/rls"
)

func TestNew_RefusesMissingParts(t *testing.T) {
	for name, make := range map[string]func() (*rls.Server, error){
		"no policies":  func() (*rls.Server, error) { return rls.New(nil, admitting(), rls.Config{}) },
		"no decider":   func() (*rls.Server, error) { return rls.New(parsed(t, mesh), nil, rls.Config{}) },
		"unknown deny": func() (*rls.Server, error) { return rls.New(parsed(t, mesh), admitting(), rls.Config{Deny: 9}) },
	} {
		if _, err := make(); err == nil {
			t.Errorf("%s: New() = nil error, want one", name)
		}
	}
}

func TestServer_StatusesAlignWithDescriptors(t *testing.T) {
	s := newServer(t, admitting(), rls.Config{})
	got, err := s.ShouldRateLimit(t.Context(), ask(
		descriptor(), tailor("acme"), descriptor("other", ""), ingest(""), tailor("acme")))
	if err != nil {
		t.Fatal(err)
	}
	ok := ratelimitv3.RateLimitResponse_OK
	reset := &durationpb.Duration{Seconds: 2}
	bucket := &ratelimitv3.RateLimitResponse_DescriptorStatus{
		Code: ok, LimitRemaining: 7, DurationUntilReset: reset,
		CurrentLimit: &ratelimitv3.RateLimitResponse_RateLimit{
			Name: "resumint.tailor", RequestsPerUnit: 200,
			Unit: ratelimitv3.RateLimitResponse_RateLimit_SECOND, UnitMultiplier: wrapperspb.UInt32(2),
		},
	}
	window := &ratelimitv3.RateLimitResponse_DescriptorStatus{
		Code: ok, LimitRemaining: 7, DurationUntilReset: reset,
		CurrentLimit: &ratelimitv3.RateLimitResponse_RateLimit{
			Name: "pdftalk.ingest", RequestsPerUnit: 1000,
			Unit: ratelimitv3.RateLimitResponse_RateLimit_MINUTE,
		},
	}
	unmatched := &ratelimitv3.RateLimitResponse_DescriptorStatus{Code: ok}
	want := []*ratelimitv3.RateLimitResponse_DescriptorStatus{unmatched, bucket, unmatched, window, bucket}
	if diff := cmp.Diff(want, got.GetStatuses(), protocmp.Transform()); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	if got.GetOverallCode() != ok || len(got.GetResponseHeadersToAdd()) != 0 {
		t.Errorf("answer is %v with headers %v, want OK without", got.GetOverallCode(), got.GetResponseHeadersToAdd())
	}
}

func TestServer_DeniesWithTheNumbersOfTheStore(t *testing.T) {
	d := &decider{decide: func(_ []limit.Charge, results []limit.Result) failure.Decision {
		results[0] = limit.Result{Allowed: true, Remaining: 40, ResetAfter: time.Second}
		results[1] = limit.Result{RetryAfter: 6100 * time.Millisecond, ResetAfter: time.Minute}
		return failure.Decision{Reason: failure.RateLimited, RetryAfter: results[1].RetryAfter, Governing: 1}
	}}
	got, err := newServer(t, d, rls.Config{}).ShouldRateLimit(t.Context(), ask(tailor("acme"), ingest("acme")))
	if err != nil {
		t.Fatal(err)
	}
	if got.GetOverallCode() != ratelimitv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("overall code = %v, want OVER_LIMIT", got.GetOverallCode())
	}
	codes := []ratelimitv3.RateLimitResponse_Code{got.GetStatuses()[0].GetCode(), got.GetStatuses()[1].GetCode()}
	want := []ratelimitv3.RateLimitResponse_Code{
		ratelimitv3.RateLimitResponse_OK, ratelimitv3.RateLimitResponse_OVER_LIMIT,
	}
	if diff := cmp.Diff(want, codes); diff != "" {
		t.Errorf("status codes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(headers("RATE_LIMITED", "7"), headersOf(got)); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	wantData := map[string]any{
		"decision": "RATE_LIMITED", "cause": "none", "endpoint_id": "pdftalk.ingest", "policy_version": 3.0,
		"degraded": false, "remaining": 0.0,
	}
	if diff := cmp.Diff(wantData, got.GetDynamicMetadata().AsMap()); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if len(got.GetRawBody()) != 0 {
		t.Error("the answer has a raw_body, which Envoy's mappers should make")
	}
}

func TestServer_RetryAfterIsAtLeastOneSecond(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		time.Microsecond: "1", time.Second: "1", time.Second + 1: "2", 90 * time.Second: "90",
	} {
		d := &decider{decide: func([]limit.Charge, []limit.Result) failure.Decision {
			return failure.Decision{Reason: failure.RateLimited, RetryAfter: wait}
		}}
		got, err := newServer(t, d, rls.Config{}).ShouldRateLimit(t.Context(), ask(tailor("acme")))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(headers("RATE_LIMITED", want), headersOf(got)); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", wait, diff)
		}
	}
}

func TestServer_PassesWhatNoPolicyGoverns(t *testing.T) {
	cases := []struct {
		name string
		in   *ratelimitv3.RateLimitRequest
		want string // the domain that is counted
	}{
		{"a domain that is not configured", &ratelimitv3.RateLimitRequest{
			Domain: "elsewhere", Descriptors: []*commonv3.RateLimitDescriptor{tailor("acme")},
		}, ""},
		{"a descriptor that no policy matches", ask(descriptor("path", "/")), "mesh"},
		{"a descriptor without entries", ask(descriptor()), "mesh"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := admitting()
			var counted []string
			s := newServer(t, d, rls.Config{OnUnmatched: func(domain string) { counted = append(counted, domain) }})
			got, err := s.ShouldRateLimit(t.Context(), c.in)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"decision": "ALLOWED", "cause": "unmatched", "degraded": false}
			if diff := cmp.Diff(want, got.GetDynamicMetadata().AsMap()); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
			if got.GetOverallCode() != ratelimitv3.RateLimitResponse_OK || len(got.GetStatuses()) != 1 {
				t.Errorf("answer = %v, want OK with one status", got)
			}
			if diff := cmp.Diff([]string{c.want}, counted); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
			if d.calls != 0 {
				t.Error("the decider was asked")
			}
		})
	}
}

func TestServer_CountsHits(t *testing.T) {
	peek := func(hits *wrapperspb.UInt64Value) *commonv3.RateLimitDescriptor {
		d := descriptor("endpoint_id", "peek")
		d.HitsAddend = hits
		return d
	}
	cases := []struct {
		name string
		in   *ratelimitv3.RateLimitRequest
		want int64
	}{
		{"none given", ask(peek(nil)), 1},
		{"by the request", &ratelimitv3.RateLimitRequest{
			Domain: "mesh", HitsAddend: 3, Descriptors: []*commonv3.RateLimitDescriptor{peek(nil)},
		}, 3},
		{"by the descriptor, which wins", &ratelimitv3.RateLimitRequest{
			Domain: "mesh", HitsAddend: 3, Descriptors: []*commonv3.RateLimitDescriptor{peek(wrapperspb.UInt64(2))},
		}, 2},
		{"0 by the descriptor asks without charging", ask(peek(wrapperspb.UInt64(0))), 0},
		{"descriptors of one bucket add up", ask(peek(wrapperspb.UInt64(1)), descriptor(), peek(wrapperspb.UInt64(2))), 3},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := admitting()
			if _, err := newServer(t, d, rls.Config{}).ShouldRateLimit(t.Context(), c.in); err != nil {
				t.Fatal(err)
			}
			if len(d.asked) != 1 || d.asked[0].Cost != c.want {
				t.Errorf("charges = %+v, want one that costs %d", d.asked, c.want)
			}
		})
	}
}

func TestServer_RaisesAPeekToTheMinimumCost(t *testing.T) {
	d := admitting()
	free := tailor("acme")
	free.HitsAddend = wrapperspb.UInt64(0)
	if _, err := newServer(t, d, rls.Config{}).ShouldRateLimit(t.Context(), ask(free)); err != nil {
		t.Fatal(err)
	}
	if d.asked[0].Cost != 1 {
		t.Errorf("cost = %d, want 1", d.asked[0].Cost)
	}
}

func TestServer_DeniesWhatCostsTooMuchWithoutAsking(t *testing.T) {
	dear := func(hits uint64) *commonv3.RateLimitDescriptor {
		d := descriptor("endpoint_id", "peek")
		d.HitsAddend = wrapperspb.UInt64(hits)
		return d
	}
	for name, in := range map[string]*ratelimitv3.RateLimitRequest{
		"one descriptor":            ask(tailor("acme"), dear(5)),
		"two of the same bucket":    ask(tailor("acme"), dear(2), dear(3)),
		"more than fits an integer": ask(tailor("acme"), dear(1<<63)),
	} {
		t.Run(name, func(t *testing.T) {
			d := admitting()
			var told failure.Decision
			var endpoint string
			s := newServer(t, d, rls.Config{OnTooDear: func(charges []limit.Charge, d failure.Decision) {
				told, endpoint = d, charges[d.Governing].Endpoint.ID
			}})
			got, err := s.ShouldRateLimit(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if d.calls != 0 {
				t.Error("the decider was asked")
			}
			if diff := cmp.Diff(headers("RATE_LIMITED", ""), headersOf(got)); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			want := map[string]any{
				"decision": "RATE_LIMITED", "cause": "cost_above_max", "endpoint_id": "peek", "policy_version": 1.0,
				"degraded": false,
			}
			if diff := cmp.Diff(want, got.GetDynamicMetadata().AsMap()); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
			statuses := got.GetStatuses()
			if statuses[0].GetCode() != ratelimitv3.RateLimitResponse_OK ||
				statuses[1].GetCode() != ratelimitv3.RateLimitResponse_OVER_LIMIT {
				t.Errorf("statuses = %v, want OK and OVER_LIMIT", statuses)
			}
			if statuses[0].GetCurrentLimit() != nil || statuses[1].GetCurrentLimit() != nil {
				t.Errorf("statuses = %v, want no numbers", statuses)
			}
			if told.Cause != failure.CauseCostAboveMax || endpoint != "peek" {
				t.Errorf("OnTooDear was told %+v of %q", told, endpoint)
			}
		})
	}
}

func TestServer_HonoursOverrides(t *testing.T) {
	with := func(
		d *commonv3.RateLimitDescriptor, requests uint32, unit typev3.RateLimitUnit, multiplier *wrapperspb.UInt32Value,
	) *commonv3.RateLimitDescriptor {
		d.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{
			RequestsPerUnit: requests, Unit: unit, UnitMultiplier: multiplier,
		}
		return d
	}
	const day = 24 * time.Hour
	cases := []struct {
		name string
		in   *commonv3.RateLimitDescriptor
		want limit.Limit
		unit ratelimitv3.RateLimitResponse_RateLimit_Unit
	}{
		{
			"a bucket a minute", with(tailor("a"), 42, typev3.RateLimitUnit_MINUTE, nil),
			limit.NewTokenBucket(42*limit.Micro, limit.Rate{Micro: 42 * limit.Micro, Period: 60 * limit.Micro}),
			ratelimitv3.RateLimitResponse_RateLimit_MINUTE,
		},
		{
			"a bucket per half minute", with(tailor("a"), 5, typev3.RateLimitUnit_SECOND, wrapperspb.UInt32(30)),
			limit.NewTokenBucket(5*limit.Micro, limit.Rate{Micro: 5 * limit.Micro, Period: 30 * limit.Micro}),
			ratelimitv3.RateLimitResponse_RateLimit_SECOND,
		},
		{
			"a window a second", with(ingest("a"), 9, typev3.RateLimitUnit_SECOND, nil),
			limit.NewSlidingWindow(9, time.Second), ratelimitv3.RateLimitResponse_RateLimit_SECOND,
		},
		{
			"a window a day", with(ingest("a"), 9, typev3.RateLimitUnit_DAY, nil),
			limit.NewSlidingWindow(9, day), ratelimitv3.RateLimitResponse_RateLimit_DAY,
		},
		{
			"a month is 30 days", with(ingest("a"), 9, typev3.RateLimitUnit_MONTH, nil),
			limit.NewSlidingWindow(9, 30*day), ratelimitv3.RateLimitResponse_RateLimit_MONTH,
		},
		{
			"a year is 365 days", with(ingest("a"), 9, typev3.RateLimitUnit_YEAR, nil),
			limit.NewSlidingWindow(9, 365*day), ratelimitv3.RateLimitResponse_RateLimit_YEAR,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := admitting()
			s := newServer(t, d, rls.Config{})
			if _, err := s.ShouldRateLimit(t.Context(), ask(tailor("a"), ingest("a"))); err != nil {
				t.Fatal(err)
			}
			keys := []string{d.asked[0].Key, d.asked[1].Key}
			got, err := s.ShouldRateLimit(t.Context(), ask(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if d.asked[0].Limit != c.want {
				t.Errorf("limit = %+v, want %+v", d.asked[0].Limit, c.want)
			}
			if key := d.asked[0].Key; key != keys[0] && key != keys[1] {
				t.Errorf("bucket = %s, want one of %v", key, keys)
			}
			shown := got.GetStatuses()[0].GetCurrentLimit()
			if shown.GetUnit() != c.unit || int64(shown.GetRequestsPerUnit()) != c.want.Tokens() {
				t.Errorf("current_limit = %v, want %d per %v", shown, c.want.Tokens(), c.unit)
			}
		})
	}
}

func TestServer_ShowsEveryWindowExactly(t *testing.T) {
	cases := []struct {
		name, limit string
		want        *ratelimitv3.RateLimitResponse_RateLimit
	}{
		{"a minute", "sliding_window: {limit: 7, window: 60s}", shown(7, "MINUTE", 1)},
		{"90 seconds", "sliding_window: {limit: 7, window: 90s}", shown(7, "SECOND", 90)},
		{"a week", "sliding_window: {limit: 7, window: 168h}", shown(7, "WEEK", 1)},
		{"36 hours", "sliding_window: {limit: 7, window: 36h}", shown(7, "HOUR", 36)},
		{"250 ms is no number of seconds", "sliding_window: {limit: 7, window: 250ms}", shown(7, "UNKNOWN", 1)},
		{"a bucket that fills in 2 s", "token_bucket: {rate: 100/s, burst: 200}", shown(200, "SECOND", 2)},
		{"a bucket that fills in 5/3 s", "token_bucket: {rate: 3/s, burst: 5}", shown(5, "UNKNOWN", 1)},
		{"a bucket that fills in a billion years", "token_bucket: {rate: 1/year, burst: 1000000000}", shown(1e9, "UNKNOWN", 1)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			set := parsed(t, "domain: mesh\npolicies:\n  - endpoint_id: x\n    descriptor: [{key: k}]\n    "+c.limit+
				"\n    fail_mode: fail_closed\n    policy_version: 1\n")
			s, err := rls.New(set, admitting(), rls.Config{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.ShouldRateLimit(t.Context(), ask(descriptor("k", "v")))
			if err != nil {
				t.Fatal(err)
			}
			c.want.Name = "x"
			if diff := cmp.Diff(c.want, got.GetStatuses()[0].GetCurrentLimit(), protocmp.Transform()); diff != "" {
				t.Errorf("current_limit (-want +got):\n%s", diff)
			}
		})
	}
}

func shown(requests uint32, unit string, multiplier uint32) *ratelimitv3.RateLimitResponse_RateLimit {
	l := &ratelimitv3.RateLimitResponse_RateLimit{
		RequestsPerUnit: requests,
		Unit: ratelimitv3.RateLimitResponse_RateLimit_Unit(
			ratelimitv3.RateLimitResponse_RateLimit_Unit_value[unit]),
	}
	if multiplier > 1 {
		l.UnitMultiplier = wrapperspb.UInt32(multiplier)
	}
	return l
}

func TestServer_NamesTheFieldOfAMalformedRequest(t *testing.T) {
	const secret = "s3cret-tenant"
	long := strings.Repeat(secret, 400)
	override := func(requests uint32, unit typev3.RateLimitUnit, multiplier *wrapperspb.UInt32Value) *commonv3.RateLimitDescriptor {
		d := tailor(secret)
		d.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{
			RequestsPerUnit: requests, Unit: unit, UnitMultiplier: multiplier,
		}
		return d
	}
	refund := tailor(secret)
	refund.IsNegativeHits = true
	crowded := &commonv3.RateLimitDescriptor{}
	for range 17 {
		crowded.Entries = append(crowded.Entries, &commonv3.RateLimitDescriptor_Entry{Key: "k", Value: secret})
	}
	second := typev3.RateLimitUnit_SECOND
	cases := []struct {
		name, field string
		in          *ratelimitv3.RateLimitRequest
	}{
		{"nothing at all", "domain: ", &ratelimitv3.RateLimitRequest{}},
		{"no request", "domain: ", nil},
		{"a long domain", "domain: ", &ratelimitv3.RateLimitRequest{
			Domain: long, Descriptors: []*commonv3.RateLimitDescriptor{tailor(secret)},
		}},
		{"no descriptors", "descriptors: ", ask()},
		{"too many descriptors", "descriptors: ", ask(make([]*commonv3.RateLimitDescriptor, 65)...)},
		{"too many entries", "descriptors[1].entries: ", ask(tailor(secret), crowded)},
		{"an empty key", "descriptors[0].entries[0].key: ", ask(descriptor("", secret))},
		{"a long key", "descriptors[0].entries[1].key: ", ask(descriptor("k", "v", long, "v"))},
		{"a long value", "descriptors[1].entries[1].value: ", ask(tailor(secret), ingest(long))},
		{"a refund", "descriptors[0].is_negative_hits: ", ask(refund)},
		{"an override without unit", "descriptors[0].limit.unit: ", ask(override(1, 0, nil))},
		{"an override of an unknown unit", "descriptors[0].limit.unit: ", ask(override(1, 77, nil))},
		{"an override of nothing", "descriptors[0].limit.requests_per_unit: ", ask(override(0, second, nil))},
		{"an override of too much", "descriptors[0].limit.requests_per_unit: ", ask(override(1e9+1, second, nil))},
		{"a multiplier of 0", "descriptors[0].limit.unit_multiplier: ", ask(override(1, second, wrapperspb.UInt32(0)))},
		{
			"two years", "descriptors[0].limit.unit_multiplier: ",
			ask(override(1, typev3.RateLimitUnit_YEAR, wrapperspb.UInt32(2))),
		},
		{"a rate that is too fast", "descriptors[0].limit: ", ask(override(1e9, second, nil))},
		{"two limits for one bucket", "descriptors[1].limit: ", ask(tailor(secret), override(1, second, nil))},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := admitting()
			out, err := newServer(t, d, rls.Config{}).ShouldRateLimit(t.Context(), c.in)
			if out != nil || status.Code(err) != codes.InvalidArgument {
				t.Fatalf("ShouldRateLimit() = %v, %v, want INVALID_ARGUMENT", out, err)
			}
			text := status.Convert(err).Message()
			if !strings.HasPrefix(text, c.field) || strings.Contains(text, secret) {
				t.Errorf("message = %q, want it to begin with %q and not to have the value", text, c.field)
			}
			if d.calls != 0 {
				t.Error("the decider was asked")
			}
		})
	}
}

func TestServer_AcceptsTheLargestRequest(t *testing.T) {
	in := ask()
	for range rls.MaxDescriptors {
		d := &commonv3.RateLimitDescriptor{}
		for range rls.MaxEntries {
			d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{
				Key: strings.Repeat("k", rls.MaxText), Value: strings.Repeat("v", rls.MaxText),
			})
		}
		in.Descriptors = append(in.Descriptors, d)
	}
	got, err := newServer(t, admitting(), rls.Config{}).ShouldRateLimit(t.Context(), in)
	if err != nil || len(got.GetStatuses()) != rls.MaxDescriptors {
		t.Errorf("ShouldRateLimit() = %d statuses, %v, want %d", len(got.GetStatuses()), err, rls.MaxDescriptors)
	}
}

func TestServer_IgnoresUnknownFields(t *testing.T) {
	raw, err := proto.Marshal(ask(tailor("acme")))
	if err != nil {
		t.Fatal(err)
	}
	raw = protowire.AppendBytes(protowire.AppendTag(raw, 1999, protowire.BytesType), []byte("from the future"))
	var in ratelimitv3.RateLimitRequest
	if err := proto.Unmarshal(raw, &in); err != nil {
		t.Fatal(err)
	}
	got, err := newServer(t, admitting(), rls.Config{}).ShouldRateLimit(t.Context(), &in)
	if err != nil || got.GetOverallCode() != ratelimitv3.RateLimitResponse_OK {
		t.Errorf("ShouldRateLimit() = %v, %v, want OK", got, err)
	}
}

func TestServer_IsSickWithoutPolicies(t *testing.T) {
	s, err := rls.New(fixed{}, admitting(), rls.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ShouldRateLimit(t.Context(), ask(tailor("a"))); status.Code(err) != codes.Unavailable {
		t.Errorf("ShouldRateLimit() = %v, want UNAVAILABLE", err)
	}
}

// A plan is used again by the next request: nothing of an earlier one may show.
func TestServer_KeepsRequestsApart(t *testing.T) {
	d := &decider{decide: func(charges []limit.Charge, results []limit.Result) failure.Decision {
		if charges[0].Cost == 3 {
			return failure.Decision{Reason: failure.RedisTimeout, Cause: failure.CauseDeadline, Allowed: true}
		}
		for i := range results {
			results[i] = limit.Result{Allowed: true, Remaining: 100 + charges[i].Cost, ResetAfter: time.Second}
		}
		return failure.Decision{Reason: failure.Allowed, Allowed: true}
	}}
	s := newServer(t, d, rls.Config{})
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := range 200 {
				hits := uint32(1 + (caller+i)%5)
				in := ask(tailor(fmt.Sprint(caller)), ingest(fmt.Sprint(i)))
				in.HitsAddend = hits
				got, err := s.ShouldRateLimit(context.Background(), in)
				if err != nil {
					t.Error(err)
					return
				}
				remaining, has := got.GetDynamicMetadata().AsMap()["remaining"]
				if degraded := hits == 3; degraded == has || has && remaining != float64(100+hits) {
					t.Errorf("%d hits: remaining = %v, %v", hits, remaining, has)
					return
				}
			}
		})
	}
	callers.Wait()
}

// After a reload nothing may keep the old policies in memory, else every reload costs some.
func TestServer_LetsGoOfOldPolicies(t *testing.T) {
	source := &changing{}
	s, err := rls.New(source, admitting(), rls.Config{})
	if err != nil {
		t.Fatal(err)
	}
	source.set = parsed(t, mesh).set
	old := weak.Make(source.set.Domain("mesh").Policies()[0])
	for range 2 {
		if _, err := s.ShouldRateLimit(t.Context(), ask(tailor("a"), ingest("a"), descriptor("endpoint_id", "peek"))); err != nil {
			t.Fatal(err)
		}
		source.set = parsed(t, mesh).set
	}
	runtime.GC()
	if old.Value() != nil {
		t.Error("a policy of the old set is still in memory")
	}
}

// changing is a source whose policies a test replaces between requests.
type changing struct{ set *policy.Set }

func (c *changing) Current() *policy.Set { return c.set }

func headers(reason, retryAfter string) map[string]string {
	h := map[string]string{"x-ratelimit-decision": reason}
	if retryAfter != "" {
		h["retry-after"] = retryAfter
	}
	return h
}

func headersOf(r *ratelimitv3.RateLimitResponse) map[string]string {
	h := map[string]string{}
	for _, header := range r.GetResponseHeadersToAdd() {
		h[header.GetKey()] = header.GetValue()
	}
	return h
}
