package backend_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/test/backend"
)

func TestHandler_CountsWhatReachedIt(t *testing.T) {
	h := backend.New(backend.PDFTalk)
	server := httptest.NewServer(h)
	defer server.Close()

	post(t, server.URL+"/pdftalk/ingest", "7", "acme")
	post(t, server.URL+"/pdftalk/ingest", "3", "globex")
	if got := get(t, server.URL+backend.CallsPath); !strings.Contains(got, `"requests":2`) {
		t.Errorf("calls = %s, want 2 requests", got)
	}
	want := backend.Calls{Requests: 2, Pages: 10, Tenant: "globex", PageHeader: "3"}
	if diff := cmp.Diff(want, h.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestHandler_PretendsToWork(t *testing.T) {
	for name, want := range map[string]string{
		backend.PDFTalk:  "read 7 page(s)",
		backend.Resumint: "tailored the résumé",
		"other":          "done",
	} {
		server := httptest.NewServer(backend.New(name))
		if got := post(t, server.URL+"/work", "7", ""); !strings.Contains(got, want) {
			t.Errorf("%s says %s, want %q", name, got, want)
		}
		server.Close()
	}
}

func post(t *testing.T, url, pages, tenant string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader("a document"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("x-pages", pages)
	r.Header.Set("x-tenant", tenant)
	return do(t, r)
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, r)
}

func do(t *testing.T, r *http.Request) string {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status = %d, want 200", resp.StatusCode)
	}
	return string(body)
}
