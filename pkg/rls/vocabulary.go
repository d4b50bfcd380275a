package rls

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// vocabulary holds the pieces that answers are put together from, encoded once by the generated code: pieces of one
// message that follow each other are that message.
type vocabulary struct {
	ok, overLimit             []byte // a response's overall code
	statusOK, statusOverLimit []byte // a status' code
	header                    map[failure.Reason][]byte
	reason                    map[failure.Reason][]byte
	cause                     map[failure.Cause][]byte
	degraded, notDegraded     []byte
}

func newVocabulary() vocabulary {
	v := vocabulary{
		ok:              encode(&ratelimitv3.RateLimitResponse{OverallCode: codeOK}),
		overLimit:       encode(&ratelimitv3.RateLimitResponse{OverallCode: codeOverLimit}),
		statusOK:        encode(&ratelimitv3.RateLimitResponse_DescriptorStatus{Code: codeOK}),
		statusOverLimit: encode(&ratelimitv3.RateLimitResponse_DescriptorStatus{Code: codeOverLimit}),
		header:          make(map[failure.Reason][]byte),
		reason:          make(map[failure.Reason][]byte),
		cause:           make(map[failure.Cause][]byte),
		degraded:        metadataEntry(metadataDegraded, structpb.NewBoolValue(true)),
		notDegraded:     metadataEntry(metadataDegraded, structpb.NewBoolValue(false)),
	}
	for _, r := range failure.Reasons {
		v.reason[r] = metadataEntry(MetadataDecision, structpb.NewStringValue(r.String()))
		v.header[r] = encode(&ratelimitv3.RateLimitResponse{
			ResponseHeadersToAdd: []*corev3.HeaderValue{{Key: HeaderDecision, Value: r.String()}},
		})
	}
	for _, c := range failure.Causes() {
		v.cause[c] = metadataEntry(metadataCause, structpb.NewStringValue(c.String()))
	}
	return v
}

// encode encodes a message of our own making, which cannot fail: its texts are ours, and valid.
func encode(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}
