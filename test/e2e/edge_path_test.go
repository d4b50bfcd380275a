package e2e_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fate is where a request ends up.
type fate struct {
	Status int
	// Backend is the service that was called, Charged the endpoint whose limit it was charged to; none is nobody.
	Backend, Charged string
}

var (
	toPDFTalk  = fate{200, pdftalk.service, pdftalk.id}
	toResumint = fate{200, resumint.service, resumint.id}
	toDefault  = fate{200, resumint.service, metered.id}
	badPath    = fate{400, none, none}
)

// No spelling of a path reaches PDFTalk without being charged to its limit, and no path reaches anything uncharged.
func TestPath(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: complete})
	m.serve(t)
	for _, c := range []struct {
		path string
		want fate
	}{
		{"/pdftalk", toPDFTalk},
		{"/pdftalk/ingest", toPDFTalk},
		{"/pdftalk/ingest?endpoint_id=default", toPDFTalk},
		{"//pdftalk/ingest", toPDFTalk},
		{"///pdftalk//ingest", toPDFTalk},
		{"/./pdftalk/ingest", toPDFTalk},
		{"/%2e/pdftalk/ingest", toPDFTalk},
		{"/resumint/../pdftalk/ingest", toPDFTalk},
		{"/resumint/%2e%2e/pdftalk/ingest", toPDFTalk},
		{"/.%2e/pdftalk/ingest", toPDFTalk},
		{"/resumint\\..\\pdftalk", toPDFTalk},
		{"/%70dftalk/ingest", toPDFTalk},
		{"/%70%64%66%74%61%6c%6B", toPDFTalk},
		{"/pdftalk/ingest;jsessionid=1", toPDFTalk},
		{"/pdftalk/../resumint/tailor", toResumint},
		{"/resumint//../pdftalk", toResumint}, // an empty segment is a segment: the result is /resumint/pdftalk
		{"/resumint/..%2fpdftalk", badPath},
		{"/resumint/..%5cpdftalk", badPath},
		{"/pdftalk%2fingest", badPath},
		{"/pdftalk%00/ingest", badPath},
		{"/pdftalk#/ingest", badPath},
		{"/%2570dftalk/ingest", toDefault},
		{"/pdftalk;/ingest", toDefault},
		{"/pdftalk%3b/ingest", toDefault},
		{"/pdftalk%20/ingest", toDefault},
		{"/pdftalk./ingest", toDefault},
		{"/PDFTalk/ingest", toDefault},
		{"/pdftalker", toDefault},
		{"/..", toDefault},
		{"", toDefault},
	} {
		t.Run(c.path, func(t *testing.T) {
			if diff := cmp.Diff(c.want, m.fateOf(t, c.path)); diff != "" {
				t.Errorf("fate (-want +got):\n%s", diff)
			}
		})
	}
}

func (m *mesh) fateOf(t *testing.T, path string) fate {
	t.Helper()
	before := map[string]int64{}
	for name, b := range m.backends {
		before[name] = b.Calls().Requests
	}
	got, _ := m.count(t, errand{Path: path, Headers: m.as(t, m.newTenant(t))})
	f := fate{Status: got.Status, Backend: none, Charged: none}
	for name, b := range m.backends {
		if b.Calls().Requests > before[name] {
			f.Backend = name
		}
	}
	for _, e := range []endpoint{pdftalk, resumint, metered} {
		if got.Counted[decided(e.id, "ALLOWED", "none", "ok")] == 1 {
			f.Charged = e.id
		}
	}
	if got.Proof.Endpoint != f.Charged {
		t.Errorf("the access log tells of %s, the service counted %s", got.Proof.Endpoint, f.Charged)
	}
	return f
}
