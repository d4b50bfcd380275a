package emergency

import (
	"testing"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// Between the check of all buckets and the payment another request may take the last token. What was paid until then
// must be given back.
func TestPay_LosingARaceGivesEverythingBack(t *testing.T) {
	rate := limit.Rate{Micro: 2 * limit.Micro, Period: limit.Micro}
	buckets := map[name]*bucket{{id: "first"}: newBucket(rate), {id: "last"}: newBucket(rate)}
	charges := []limit.Charge{
		{Cost: 1, Endpoint: &limit.Endpoint{ID: "first"}},
		{Cost: 1, Endpoint: &limit.Endpoint{ID: "last"}},
	}
	if !buckets[name{id: "last"}].spend(0, 2) {
		t.Fatal("a full bucket denied")
	}
	if wait, _, ok := pay(buckets, charges, 0); ok || wait <= 0 {
		t.Errorf("pay = %v, %v, want a denial with a time", wait, ok)
	}
	if first := buckets[name{id: "first"}]; !first.spend(0, 2) {
		t.Error("the first bucket lost a token to a request that was denied")
	}
}
