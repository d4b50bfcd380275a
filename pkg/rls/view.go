package rls

import (
	"math"
	"sync"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/pkg/policy"
)

// view is the part of an answer that is the same for every request of a policy, encoded.
type view struct {
	policy       *policy.Policy
	currentLimit []byte // the field of a status
	metadata     []byte // entries of a Struct: the endpoint and the policy's version
}

func newView(p *policy.Policy, l limit.Limit) *view {
	endpoint := metadataEntry(metadataEndpoint, structpb.NewStringValue(p.Endpoint.ID))
	version := metadataEntry(metadataVersion, structpb.NewNumberValue(float64(p.Version)))
	return &view{
		policy:       p,
		currentLimit: encode(&ratelimitv3.RateLimitResponse_DescriptorStatus{CurrentLimit: currentLimit(p.Endpoint.ID, l)}),
		metadata:     append(endpoint, version...),
	}
}

// viewCache keeps the views of the policies of one set, made when they are first needed.
type viewCache struct {
	set      *policy.Set
	byPolicy sync.Map // from *policy.Policy to *view
}

func (c *viewCache) of(p *policy.Policy) *view {
	if v, ok := c.byPolicy.Load(p); ok {
		return v.(*view)
	}
	v, _ := c.byPolicy.LoadOrStore(p, newView(p, p.Limit))
	return v.(*view)
}

// units are the units of an answer, longest first, in the seconds that Envoy counts for them.
var units = [...]struct {
	unit    ratelimitv3.RateLimitResponse_RateLimit_Unit
	seconds int64
}{
	{ratelimitv3.RateLimitResponse_RateLimit_YEAR, 365 * 86400},
	{ratelimitv3.RateLimitResponse_RateLimit_MONTH, 30 * 86400},
	{ratelimitv3.RateLimitResponse_RateLimit_WEEK, 7 * 86400},
	{ratelimitv3.RateLimitResponse_RateLimit_DAY, 86400},
	{ratelimitv3.RateLimitResponse_RateLimit_HOUR, 3600},
	{ratelimitv3.RateLimitResponse_RateLimit_MINUTE, 60},
	{ratelimitv3.RateLimitResponse_RateLimit_SECOND, 1},
}

// currentLimit describes l exactly: what a bucket holds at most, and the time in which it is full again. A time that
// is no whole number of seconds, or of more than Envoy can count, leaves the unit UNKNOWN: Envoy then prints no
// policy item, which is better than a wrong one. The longest unit that divides the time is taken, because Envoys
// before 1.40 do not know the multiplier.
func currentLimit(name string, l limit.Limit) *ratelimitv3.RateLimitResponse_RateLimit {
	shown := &ratelimitv3.RateLimitResponse_RateLimit{Name: name, RequestsPerUnit: uint32(l.Tokens())}
	window := l.Window()
	seconds := int64(window / time.Second)
	if window%time.Second != 0 || seconds < 1 || seconds > math.MaxUint32 {
		return shown
	}
	for _, u := range units {
		if seconds%u.seconds != 0 {
			continue
		}
		shown.Unit = u.unit
		if n := seconds / u.seconds; n > 1 {
			shown.UnitMultiplier = wrapperspb.UInt32(uint32(n))
		}
		return shown
	}
	return shown
}
