package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// counts are samples by series, written as the service exports them: name{label="value",...}, labels in order of
// their names.
type counts map[string]float64

// parseMetrics reads the text format. Values with spaces in a label, which no label here has, would break it.
func parseMetrics(text string) (counts, error) {
	c := counts{}
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, "#") || strings.TrimSpace(l) == "" {
			continue
		}
		series, value, ok := strings.Cut(strings.TrimSpace(l), " ")
		number, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("not a sample: %q", l)
		}
		c[series] = number
	}
	return c, nil
}

// since is what the counters named have gained after before; series that gained nothing are left out.
func (c counts) since(before counts, names ...string) counts {
	gained := counts{}
	for series, value := range c {
		name, _, _ := strings.Cut(series, "{")
		for _, n := range names {
			if n == name && value != before[series] {
				gained[series] = value - before[series]
			}
		}
	}
	return gained
}

// sum adds up the samples of a metric whose labels include all of want, each written label="value".
func (c counts) sum(name string, want ...string) float64 {
	var total float64
	for series, value := range c {
		if !strings.HasPrefix(series, name+"{") && series != name {
			continue
		}
		matches := true
		for _, w := range want {
			matches = matches && strings.Contains(series, w)
		}
		if matches {
			total += value
		}
	}
	return total
}

// Names of the metrics that requests are compared by.
const (
	decisionsTotal = "ratelimit_decisions_total"
	emergencyTotal = "ratelimit_emergency_total"
	unmatchedTotal = "ratelimit_unmatched_total"
)

func decided(endpoint, reason, cause, answer string) string {
	return fmt.Sprintf(`%s{answer=%q,cause=%q,domain="mesh",endpoint_id=%q,reason=%q}`,
		decisionsTotal, answer, cause, endpoint, reason)
}

func emergency(endpoint, result string) string {
	return fmt.Sprintf(`%s{domain="mesh",endpoint_id=%q,result=%q}`, emergencyTotal, endpoint, result)
}

// fetch returns the body of a page that must answer 200.
func fetch(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v\n%s", url, resp.Status, err, body)
	}
	return string(body)
}
