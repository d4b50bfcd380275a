package drill

import (
	"fmt"
	"math"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/load"
)

// What the drill's policies are called.
const (
	domain    = "drill"
	steady    = "drill.steady"
	open      = "drill.open"
	ration    = "drill.ration"
	bystander = "drill.bystander"
	entryKey  = "endpoint_id"
	tenant    = "tenant"
)

const (
	// fallback is what the fail_open endpoint admits each second without the store.
	fallback = 20
	// rationRate is how fast the rationed bucket refills: hardly.
	rationRate = 1
	// tenants share the load of each endpoint but the rationed one.
	tenants = 8
	// rationLeft is for how long after the fault a full store would still admit from the rationed bucket: long enough
	// that admissions go on when the master changes, short enough that the bucket is empty soon after.
	rationLeft = 2 * time.Second
)

// streams are the parts of the load: two fifths to an endpoint that fails closed, as much to one that fails open, the
// rest to a single bucket whose every admission is counted. In a Cluster half of the first go to a master that is left
// in peace.
func (c Config) streams() []journal.Stream {
	rationed := c.Rate / 5
	list := []journal.Stream{
		{Name: steady, FailMode: "fail_closed", PerSecond: 2 * c.Rate / 5, Steady: true},
		{Name: open, FailMode: "fail_open", PerSecond: 2 * c.Rate / 5, Fallback: fallback},
		{Name: ration, FailMode: "fail_closed", PerSecond: rationed, Ration: &journal.Ration{
			Burst: math.Ceil(rationed * (c.Before + rationLeft).Seconds()), PerSecond: rationRate,
		}},
	}
	if c.Category == journal.Cluster {
		list[0].PerSecond /= 2
		list = append(list, journal.Stream{
			Name: bystander, FailMode: "fail_closed", PerSecond: list[0].PerSecond, Bystander: true,
		})
	}
	return list
}

// policies are those that the service enforces in the drill. The two without a ration never deny by themselves.
func (c Config) policies() string {
	plenty := math.Ceil(100 * c.Rate)
	text := "domain: " + domain + "\npolicies:\n"
	for _, s := range c.streams() {
		rate, burst := plenty, plenty
		if s.Ration != nil {
			rate, burst = s.Ration.PerSecond, s.Ration.Burst
		}
		text += fmt.Sprintf("  - endpoint_id: %s\n    descriptor: [{key: %s, value: %s}, {key: %s}]\n"+
			"    token_bucket: {rate: %.0f/s, burst: %.0f}\n    fail_mode: %s\n    policy_version: 1\n",
			s.Name, entryKey, s.Name, tenant, rate, burst, s.FailMode)
		if s.Fallback > 0 {
			text += fmt.Sprintf("    fallback_rate_per_process: %.0f/s\n", s.Fallback)
		}
	}
	return text
}

// offer is the load for these policies. only names the only one of a stream; a stream that it does not name has
// several, but for a rationed one, whose bucket must be one.
func (c Config) offer(target string, only map[string]string) *offer {
	o := &offer{target: target, domain: domain, streams: c.streams()}
	for _, s := range o.streams {
		who, keys := "t"+load.KeyPlaceholder, tenants
		if s.Ration != nil {
			who, keys = "one", 1
		}
		if name := only[s.Name]; name != "" {
			who, keys = name, 1
		}
		o.keys = append(o.keys, keys)
		o.descriptors = append(o.descriptors, [][]load.Entry{{{Key: entryKey, Value: s.Name}, {Key: tenant, Value: who}}})
	}
	return o
}
