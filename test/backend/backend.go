// Package backend pretends to be the services that the trial protects: PDFTalk, which reads pages, and Resumint,
// which tailors a résumé. A Handler does none of the work; it counts the calls that reached it, which is how tests
// prove that a denied request never did. It knows nothing of rate limits. A Handler is safe for concurrent use.
package backend

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// Names of the services that Handler can pretend to be. Any other name gets an answer without a pretence.
const (
	PDFTalk  = "pdftalk"
	Resumint = "resumint"
)

// CallsPath is where a Handler tells how often it was called; asking is not counted.
const CallsPath = "/calls"

// maxBody is how much of a request's body is read, in bytes; the stand-ins have no use for any of it.
const maxBody = 10 << 20

// Calls is what a Handler has seen since it was made.
type Calls struct {
	// Requests is how many calls came, of which Pages is the sum of their pages.
	Requests int64 `json:"requests"`
	Pages    int64 `json:"pages"`
	// Tenant and PageHeader are what the last call carried in x-tenant and x-pages.
	Tenant     string `json:"tenant"`
	PageHeader string `json:"page_header"`
}

// Handler is a stand-in service. Make one with New.
type Handler struct {
	name string

	mu    sync.Mutex
	calls Calls
}

// New returns the stand-in of that name.
func New(name string) *Handler {
	return &Handler{name: name}
}

// Calls is a copy of what h has counted.
func (h *Handler) Calls() Calls {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

// ServeHTTP answers CallsPath with the counts as JSON, and everything else as the service would after its work.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == CallsPath {
		answer(w, h.Calls())
		return
	}
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody))
	pages, _ := strconv.ParseInt(r.Header.Get("x-pages"), 10, 64)
	h.count(r, pages)
	answer(w, map[string]string{"service": h.name, "result": h.result(pages)})
}

func (h *Handler) count(r *http.Request, pages int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls.Requests++
	h.calls.Pages += pages
	h.calls.Tenant = r.Header.Get("x-tenant")
	h.calls.PageHeader = r.Header.Get("x-pages")
}

func (h *Handler) result(pages int64) string {
	switch h.name {
	case PDFTalk:
		return fmt.Sprintf("read %d page(s)", pages)
	case Resumint:
		return "tailored the résumé"
	default:
		return "done"
	}
}

// answer writes v as JSON; an error means that the caller has gone, which is its own affair.
func answer(w http.ResponseWriter, v any) {
	w.Header().Set("content-type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
