package e2e_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/honestlimit/ratelimit/internal/redistest"
)

// ingest is a descriptor of complete, changed.
func ingest(tenant string, change func(*commonv3.RateLimitDescriptor)) *commonv3.RateLimitDescriptor {
	d := about("endpoint_id", pdftalk.id, "tenant", tenant)
	if change != nil {
		change(d)
	}
	return d
}

// overriding is ingest with a limit of its own.
func overriding(tenant string, o *commonv3.RateLimitDescriptor_RateLimitOverride) *commonv3.RateLimitDescriptor {
	return ingest(tenant, func(d *commonv3.RateLimitDescriptor) { d.Limit = o })
}

// A request that cannot be meant is refused by the name of the field at fault, and never by its value; the next one is
// decided, and nothing was charged.
func TestMalformed(t *testing.T) {
	p := newPeer(t, complete)
	tenant := p.secrets.keep("tenant-of-malformed-requests")
	good := ingest(tenant, nil)
	long := p.secrets.keep(strings.Repeat("long", 1025))
	for i, c := range []struct {
		field  string
		domain string
		in     []*commonv3.RateLimitDescriptor
	}{
		{"domain", "", []*commonv3.RateLimitDescriptor{good}},
		{"domain", long, []*commonv3.RateLimitDescriptor{good}},
		{"descriptors", "mesh", nil},
		{"descriptors", "mesh", slices.Repeat([]*commonv3.RateLimitDescriptor{good}, 65)},
		{"descriptors[0].entries", "mesh", []*commonv3.RateLimitDescriptor{about(slices.Repeat([]string{"k", tenant}, 17)...)}},
		{"descriptors[1].entries[1].key", "mesh", []*commonv3.RateLimitDescriptor{good, about("k", "v", "", tenant)}},
		{"descriptors[0].entries[0].key", "mesh", []*commonv3.RateLimitDescriptor{about(long, "v")}},
		{"descriptors[0].entries[1].value", "mesh", []*commonv3.RateLimitDescriptor{ingest(long, nil)}},
		{"descriptors[0].is_negative_hits", "mesh", []*commonv3.RateLimitDescriptor{
			ingest(tenant, func(d *commonv3.RateLimitDescriptor) {
				d.IsNegativeHits, d.HitsAddend = true, wrapperspb.UInt64(1000)
			}),
		}},
		{"descriptors[0].limit.unit", "mesh", []*commonv3.RateLimitDescriptor{
			overriding(tenant, &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1e6}),
		}},
		{"descriptors[0].limit.unit", "mesh", []*commonv3.RateLimitDescriptor{
			overriding(tenant, &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1e6, Unit: 99}),
		}},
		{"descriptors[0].limit.requests_per_unit", "mesh", []*commonv3.RateLimitDescriptor{
			overriding(tenant, &commonv3.RateLimitDescriptor_RateLimitOverride{Unit: typev3.RateLimitUnit_SECOND}),
		}},
		{"descriptors[0].limit.requests_per_unit", "mesh", []*commonv3.RateLimitDescriptor{
			overriding(tenant, &commonv3.RateLimitDescriptor_RateLimitOverride{
				RequestsPerUnit: math.MaxUint32, Unit: typev3.RateLimitUnit_YEAR,
			}),
		}},
		{"descriptors[0].limit.unit_multiplier", "mesh", []*commonv3.RateLimitDescriptor{
			overriding(tenant, &commonv3.RateLimitDescriptor_RateLimitOverride{
				RequestsPerUnit: 1, Unit: typev3.RateLimitUnit_YEAR, UnitMultiplier: wrapperspb.UInt32(2),
			}),
		}},
		{"descriptors[1].limit", "mesh", []*commonv3.RateLimitDescriptor{
			good, overriding(tenant, &commonv3.RateLimitDescriptor_RateLimitOverride{
				RequestsPerUnit: 1, Unit: typev3.RateLimitUnit_HOUR,
			}),
		}},
	} {
		v, err := p.send(t, &ratelimitv3.RateLimitRequest{Domain: c.domain, Descriptors: c.in})
		message := status.Convert(err).Message()
		if v.Code != codes.InvalidArgument || !strings.HasPrefix(message, c.field+": ") {
			t.Errorf("case %d is answered %v, want INVALID_ARGUMENT of %s", i, err, c.field)
		}
		p.secrets.search(t, "the error "+c.field, message)
	}
	p.checkUnharmed(t, tenant)
}

// checkUnharmed checks that the service still decides, and that the tenant has every page left.
func (p *peer) checkUnharmed(t *testing.T, tenant string) {
	t.Helper()
	want := verdict{0, ok, "ALLOWED", "none", pdftalk.id, []ratelimitv3.RateLimitResponse_Code{ok}, []uint32{999}}
	p.check(t, "an honest request", want, p.ask(t, ingest(tenant, nil)))
	if n := p.service.metrics(t)["ratelimit_panics_total"]; n != 0 {
		t.Errorf("%v panics were recovered, want none", n)
	}
	if err := p.service.process.Exited(); err != nil {
		t.Error(err)
	}
}

// What stands at the bounds is no mistake.
func TestMalformed_TheLargestIsNot(t *testing.T) {
	p := newPeer(t, complete)
	wide := about(slices.Repeat([]string{strings.Repeat("k", 4096), strings.Repeat("v", 4096)}, 16)...)
	v, err := p.send(t, &ratelimitv3.RateLimitRequest{
		Domain: strings.Repeat("d", 256), HitsAddend: math.MaxUint32,
		Descriptors: slices.Repeat([]*commonv3.RateLimitDescriptor{wide, about()}, 15),
	})
	if err != nil || v.Overall != ok || v.Cause != "unmatched" || len(v.Each) != 30 {
		t.Errorf("a large request comes to %+v, %v", v, err)
	}
	huge := ingest("acme", func(d *commonv3.RateLimitDescriptor) { d.HitsAddend = wrapperspb.UInt64(math.MaxUint64) })
	p.check(t, "more hits than there are", verdict{
		0, over, "RATE_LIMITED", "cost_above_max", pdftalk.id, []ratelimitv3.RateLimitResponse_Code{over}, []uint32{0},
	}, p.ask(t, huge))
	p.check(t, "many huge ones of one bucket", verdict{
		0, over, "RATE_LIMITED", "cost_above_max", pdftalk.id,
		slices.Repeat([]ratelimitv3.RateLimitResponse_Code{over}, 64), make([]uint32, 64),
	}, p.ask(t, slices.Repeat([]*commonv3.RateLimitDescriptor{huge}, 64)...))
	p.checkUnharmed(t, "acme")
}

// rawCodec sends and receives bytes as they are.
type rawCodec struct{}

// Name is that of the codec whose place it takes.
func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// throw sends bytes to a method, and returns how they are taken.
func (p *peer) throw(t *testing.T, method string, b []byte) codes.Code {
	t.Helper()
	ctx, cancel := deadline(t)
	defer cancel()
	var out []byte
	return status.Code(p.conn.Invoke(ctx, method, &b, &out, grpc.ForceCodecV2(rawCodec{}), grpc.WaitForReady(true)))
}

// Bytes that mean nothing, or nearly something, end in an error or an answer, and in nothing else.
func TestMalformed_RandomBytes(t *testing.T) {
	p := newPeer(t, complete)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	may := []codes.Code{codes.OK, codes.InvalidArgument, codes.Internal} // grpc-go calls what it cannot parse INTERNAL
	for i := range 2000 {
		b := spoil(t, random)
		if got := p.throw(t, ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName, b); !slices.Contains(may, got) {
			t.Fatalf("message %d, %x, is answered %v, want one of %v", i, b, got, may)
		}
	}
	if got := p.throw(t, ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName, make([]byte, 5<<20)); got != codes.ResourceExhausted {
		t.Errorf("5 MiB are answered %v, want RESOURCE_EXHAUSTED", got)
	}
	if got := p.throw(t, "/envoy.service.ratelimit.v2.RateLimitService/ShouldRateLimit", nil); got != codes.Unimplemented {
		t.Errorf("the protocol of old is answered %v, want UNIMPLEMENTED", got)
	}
	p.checkUnharmed(t, "unspoiled")
}

// spoil returns a message of which anything may be wrong: what its fields hold, how many there are, or its bytes.
func spoil(t *testing.T, random *rand.Rand) []byte {
	t.Helper()
	in := &ratelimitv3.RateLimitRequest{Domain: pick(random, "mesh", "", "other"), HitsAddend: number[uint32](random)}
	for range pick(random, 0, 1, 1, 2, 2, 64, 65) {
		in.Descriptors = append(in.Descriptors, spoiledDescriptor(random))
	}
	b, err := proto.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	for range pick(random, 0, 0, 1, 3) {
		if at := random.IntN(len(b) + 1); at < len(b) {
			b[at] = byte(random.Uint32())
			b = slices.Insert(b, at, b[at:min(len(b), at+random.IntN(9))]...)
		}
	}
	return b[:len(b)-random.IntN(len(b)+1)*pick(random, 0, 0, 0, 1)]
}

func spoiledDescriptor(random *rand.Rand) *commonv3.RateLimitDescriptor {
	d := ingest("spoiled", nil)
	for range pick(random, 0, 0, 0, 1, 14, 15) {
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{
			Key: pick(random, "tenant", "k", "", strings.Repeat("k", 4097)), Value: pick(random, "", "v", "\x00"),
		})
	}
	d.Entries = d.Entries[random.IntN(len(d.Entries))*pick(random, 0, 0, 1):]
	if random.IntN(3) == 0 {
		d.HitsAddend = wrapperspb.UInt64(number[uint64](random))
	}
	if random.IntN(3) == 0 {
		d.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{
			RequestsPerUnit: number[uint32](random), Unit: typev3.RateLimitUnit(random.IntN(9) - 1),
		}
		if random.IntN(2) == 0 {
			d.Limit.UnitMultiplier = wrapperspb.UInt32(number[uint32](random))
		}
	}
	d.IsNegativeHits = random.IntN(20) == 0
	return d
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// number is any number, and often one near a bound.
func number[T uint32 | uint64](random *rand.Rand) T {
	return pick(random, 0, 1, 2, 500, 1_000_000_000, 1_000_000_001, T(1)<<31-1, T(1)<<31, ^T(0), T(random.Uint64()))
}

// Who speaks another protocol to either port, or none at all, does no harm.
func TestMalformed_OtherProtocols(t *testing.T) {
	p := newPeer(t, complete)
	grpcAddr, adminAddr := p.conn.Target(), strings.TrimPrefix(p.service.admin, "http://")
	var idle []net.Conn
	defer func() {
		for _, c := range idle {
			c.Close()
		}
	}()
	for _, addr := range []string{grpcAddr, adminAddr} {
		for _, words := range []string{
			"", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "*1\r\n$4\r\nPING\r\n",
			"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff", strings.Repeat("\x00", 70000),
		} {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			idle = append(idle, c)
			_, _ = io.WriteString(c, words) // it may hang up in the middle
		}
	}
	for path, want := range map[string]int{"/": 404, "/debug/pprof/": 404} {
		if got := getStatus(t, http.MethodGet, p.service.admin+path); got != want {
			t.Errorf("the admin port answers %s with %d, want %d", path, got, want)
		}
	}
	if got := getStatus(t, http.MethodPost, p.service.admin+"/policies"); got != http.StatusMethodNotAllowed {
		t.Errorf("the admin port answers a POST with %d, want 405", got)
	}
	p.checkUnharmed(t, "unharmed")
}

func getStatus(t *testing.T, method, url string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // no redirect is followed
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", url, err))
	}
	resp.Body.Close()
	return resp.StatusCode
}
