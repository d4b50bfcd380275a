package load

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// answers of the shapes that services send.
func answers() []*ratelimitv3.RateLimitResponse {
	metadata := func(fields map[string]any) *structpb.Struct {
		s, err := structpb.NewStruct(fields)
		if err != nil {
			panic(err)
		}
		return s
	}
	return []*ratelimitv3.RateLimitResponse{
		{},
		{OverallCode: ratelimitv3.RateLimitResponse_OK},
		{
			OverallCode: ratelimitv3.RateLimitResponse_OVER_LIMIT,
			Statuses: []*ratelimitv3.RateLimitResponse_DescriptorStatus{
				{Code: ratelimitv3.RateLimitResponse_OVER_LIMIT}, nil,
			},
			ResponseHeadersToAdd: []*corev3.HeaderValue{{Key: "decision", Value: "not this one"}},
			RawBody:              []byte("decision"),
			DynamicMetadata: metadata(map[string]any{
				"decision": "RATE_LIMITED", "degraded": false, "remaining": 12.5, "cause": nil,
				"nested": map[string]any{"decision": "nor this"}, "list": []any{"decision", true},
			}),
		},
		{DynamicMetadata: metadata(map[string]any{"decision": "CIRCUIT_OPEN", "degraded": true})},
		{DynamicMetadata: metadata(map[string]any{"decision": true, "degraded": "yes"})},
	}
}

func FuzzCodec_ReadsWhatTheGeneratedCodeReads(f *testing.F) {
	for _, a := range answers() {
		encoded, err := proto.Marshal(a)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		var want ratelimitv3.RateLimitResponse
		var got call
		err := codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(encoded)}, &got)
		if proto.Unmarshal(encoded, &want) != nil {
			return // what is read of a broken message does not matter, as long as nothing panics
		}
		if err != nil {
			t.Fatalf("Unmarshal: %v, but the generated code can", err)
		}
		// Only a canonical encoding, such as every service sends, is read in full: nothing is merged.
		canonical, err := proto.Marshal(&want)
		if err != nil || len(canonical) != len(encoded) || want.ProtoReflect().GetUnknown() != nil {
			return
		}
		fields := want.GetDynamicMetadata().GetFields()
		if got.reply.code != want.GetOverallCode() ||
			string(got.reply.decision) != fields[metadataDecision].GetStringValue() ||
			got.reply.degraded != fields[metadataDegraded].GetBoolValue() {
			t.Errorf("read %v %q %v of %v", got.reply.code, got.reply.decision, got.reply.degraded, &want)
		}
	})
}

func TestCodec_ReadsAnAnswerInPieces(t *testing.T) {
	encoded, err := proto.Marshal(answers()[3])
	if err != nil {
		t.Fatal(err)
	}
	var got call
	half := len(encoded) / 2
	pieces := mem.BufferSlice{mem.SliceBuffer(encoded[:half]), mem.SliceBuffer(encoded[half:])}
	if err := (codec{}).Unmarshal(pieces, &got); err != nil {
		t.Fatal(err)
	}
	if string(got.reply.decision) != "CIRCUIT_OPEN" || !got.reply.degraded {
		t.Errorf("read %q, degraded %v", got.reply.decision, got.reply.degraded)
	}
}

func TestCodec_ForgetsTheLastAnswer(t *testing.T) {
	var c call
	for _, i := range []int{3, 0} {
		encoded, err := proto.Marshal(answers()[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := (codec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer(encoded)}, &c); err != nil {
			t.Fatal(err)
		}
	}
	if c.reply.code != 0 || len(c.reply.decision) != 0 || c.reply.degraded {
		t.Errorf("an empty answer reads as %+v", c.reply)
	}
}

// Everything that a request costs besides what gRPC spends.
func TestWorker_AllocatesNothingOfItsOwn(t *testing.T) {
	cfg := Config{
		Domain: "mesh", Keys: 1000, Requests: 1, Limit: &Limit{}, Fault: &Fault{},
		Descriptors: [][]Entry{{{Key: "tenant", Value: KeyPlaceholder}}},
	}.withDefaults()
	messages, err := newMessages(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(cfg, nil, messages, nil)
	for name, answer := range map[string]*ratelimitv3.RateLimitResponse{
		"with a reason": answers()[2], "without": answers()[1],
	} {
		encoded, err := proto.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		data := mem.BufferSlice{mem.SliceBuffer(encoded)}
		w := &worker{run: r, shard: r.shards[0], keys: newDrawer(cfg, 0)}
		allocations := testing.AllocsPerRun(1000, func() {
			key := w.keys.next()
			w.call.request = r.messages.at(key)
			if _, err := (codec{}).Marshal(&w.call); err != nil {
				t.Fatal(err)
			}
			if err := (codec{}).Unmarshal(data, &w.call); err != nil {
				t.Fatal(err)
			}
			o := w.outcome(t.Context(), nil)
			o.answered = 1000
			r.count(w.shard, o, key)
		})
		if allocations != 0 {
			t.Errorf("%s: %v allocations a request, want 0", name, allocations)
		}
	}
}
