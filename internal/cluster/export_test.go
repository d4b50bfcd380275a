package cluster

import "time"

// What tests of the package's own parts need.
var (
	ParseView      = parseView
	ParseEndpoints = parseEndpoints
	Pointed        = pointed
)

// Topology is what is believed of one.
type Topology = news

// Distrust is how long strangers are not believed.
const Distrust = distrust

// Merge puts together what nodes say, each as CLUSTER NODES does, so long after the beginning. It returns what is
// believed then.
func Merge(before *Topology, after time.Duration, texts ...string) (*Topology, error) {
	if before == nil {
		before = &news{}
	}
	var views []view
	for _, text := range texts {
		v, err := parseView(text, "10.0.0.99:7000", nil)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	if n := merge(before, views, time.Time{}.Add(after)); n != nil {
		return n, nil
	}
	return before, nil
}

// OwnerOf is the address of a slot's owner, empty if nobody has it.
func (n *news) OwnerOf(slot uint16) string { return n.members[n.owners[slot].id].address }

// Shown are the addresses of the members that have shards.
func (n *news) Shown() (addresses []string) {
	for _, m := range n.members {
		owns := false
		for _, c := range n.owners {
			owns = owns || c.id == m.id
		}
		if n.shows(m, owns) {
			addresses = append(addresses, m.address)
		}
	}
	return addresses
}

// AddressOf is that of the only member.
func AddressOf(v view) string { return v.members[0].address }

// ProofKeys are the buckets that the shards prove to write, by address.
func (s *Store) ProofKeys() map[string]string {
	keys := map[string]string{}
	for _, sh := range s.routes.Load().shards {
		keys[sh.address] = s.proofKey(sh)
	}
	return keys
}
