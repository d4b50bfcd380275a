package rls

import (
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/pkg/policy"
)

// nobody stands where the index of a charge would, if there is none.
const nobody = -1

// plan is one request on its way through the server, and the memory it needs; plans are reused. An ask is a
// descriptor, a charge is a bucket: descriptors without a policy have no charge, descriptors of the same bucket
// share one.
type plan struct {
	server     *Server
	text       string   // the request, encoded
	raw        []string // the descriptors, encoded
	domain     string
	configured string         // domain if there is such a domain, else empty
	entries    []policy.Entry // of all asks, one after the other
	asks       []ask
	charges    []limit.Charge
	views      []*view // one for each charge
	results    []limit.Result
	tooDear    int    // index of a charge that costs more than its policy allows
	out        []byte // the encoded answer
	part       []byte // a part of it whose length is not known yet
}

// ask is one descriptor.
type ask struct {
	first, end int // of its entries
	hits       uint64
	override   override
	charge     int
}

// match looks the asks up in set and makes their charges.
func (p *plan) match(set *policy.Set, views *viewCache) error {
	p.tooDear = nobody
	domain := set.Domain(p.domain)
	if domain == nil {
		return nil
	}
	p.configured = p.domain
	for i := range p.asks {
		descriptor := p.entries[p.asks[i].first:p.asks[i].end]
		governing := domain.Match(descriptor)
		if governing == nil {
			continue
		}
		if err := p.charge(i, governing.BucketKey(descriptor), views.of(governing)); err != nil {
			return err
		}
	}
	if cap(p.results) < len(p.charges) {
		p.results = make([]limit.Result, len(p.charges))
	}
	p.results = p.results[:len(p.charges)]
	return nil
}

// charge adds ask i to the charge of its bucket, which is new unless an earlier ask of this request has the same.
func (p *plan) charge(i int, key string, v *view) error {
	a := &p.asks[i]
	held := v.policy.Limit
	if a.override != (override{}) {
		held = a.override.over(held)
		if err := held.Validate(); err != nil {
			return invalid(field(i, "limit"), "%v", err)
		}
		v = newView(v.policy, held)
	}
	cost, ok := v.policy.Cost(a.hits)
	a.charge = p.chargeOf(key)
	if a.charge == nobody {
		a.charge = len(p.charges)
		p.charges = append(p.charges, limit.Charge{Key: key, Limit: held, Endpoint: &v.policy.Endpoint})
		p.views = append(p.views, v)
	}
	c := &p.charges[a.charge]
	if c.Limit != held {
		return invalid(field(i, "limit"), "contradicts an earlier descriptor of the same bucket")
	}
	c.Cost += cost
	if (!ok || c.Cost > v.policy.MaxCost) && p.tooDear == nobody {
		p.tooDear = a.charge
	}
	return nil
}

// chargeOf searches in sequence: nearly all requests have one charge, none has more than MaxDescriptors.
func (p *plan) chargeOf(key string) int {
	for i := range p.charges {
		if p.charges[i].Key == key {
			return i
		}
	}
	return nobody
}

// reset makes p fit for the next request and lets go of everything that belongs to this one.
func (p *plan) reset() {
	clear(p.raw)
	clear(p.entries)
	clear(p.charges)
	clear(p.views)
	clear(p.results)
	*p = plan{
		server: p.server, raw: p.raw[:0], entries: p.entries[:0], asks: p.asks[:0], charges: p.charges[:0],
		views: p.views[:0], results: p.results[:0], out: p.out[:0], part: p.part[:0],
	}
}
