package e2e_test

import (
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/honestlimit/ratelimit/internal/process"
)

// peer is somebody who talks to the service as Envoy does, and may say what Envoy never would.
type peer struct {
	conn    *grpc.ClientConn
	service *service
	secrets *secrets
}

// newPeer starts a service without an Envoy, and connects to it.
func newPeer(t *testing.T, policies string, flags ...string) *peer {
	t.Helper()
	addrs, err := process.FreeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{secrets: &secrets{}, conn: connect(t, addrs[0], insecure.NewCredentials())}
	flags = append([]string{"--policies", writePolicies(t, policies)}, flags...)
	p.service = startService(t, addrs[0], p.secrets, flags...)
	return p
}

// connect opens a connection to target, an address or unix:PATH.
func connect(t *testing.T, target string, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// about is a descriptor of these keys and values.
func about(pairs ...string) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for i := 0; i < len(pairs); i += 2 {
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return d
}

// verdict is an answer in short.
type verdict struct {
	Code codes.Code
	// The rest is set only if Code is OK.
	Overall         ratelimitv3.RateLimitResponse_Code
	Decision, Cause string
	Endpoint        string
	// Each is the code of every descriptor, Left what remains of its bucket.
	Each []ratelimitv3.RateLimitResponse_Code
	Left []uint32
}

const (
	ok   = ratelimitv3.RateLimitResponse_OK
	over = ratelimitv3.RateLimitResponse_OVER_LIMIT
)

// ask asks the mesh domain about descriptors.
func (p *peer) ask(t *testing.T, descriptors ...*commonv3.RateLimitDescriptor) verdict {
	t.Helper()
	v, _ := p.send(t, &ratelimitv3.RateLimitRequest{Domain: "mesh", Descriptors: descriptors})
	return v
}

func (p *peer) send(t *testing.T, in *ratelimitv3.RateLimitRequest) (verdict, error) {
	t.Helper()
	ctx, cancel := deadline(t)
	defer cancel()
	out, err := ratelimitv3.NewRateLimitServiceClient(p.conn).ShouldRateLimit(ctx, in, grpc.WaitForReady(true))
	if err != nil {
		return verdict{Code: status.Code(err)}, err
	}
	data := out.GetDynamicMetadata().AsMap()
	v := verdict{
		Overall: out.GetOverallCode(), Decision: asText(data["decision"]), Cause: asText(data["cause"]),
		Endpoint: asText(data["endpoint_id"]),
	}
	for _, s := range out.GetStatuses() {
		v.Each, v.Left = append(v.Each, s.GetCode()), append(v.Left, s.GetLimitRemaining())
	}
	return v, nil
}

func (p *peer) check(t *testing.T, what string, want, got verdict) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func asText(v any) string {
	s, _ := v.(string)
	return s
}
