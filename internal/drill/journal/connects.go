package journal

// Connects is how many connections one node accepted around the fault.
type Connects struct {
	// Node names it.
	Node string `json:"node"`
	// Accepted are the connections since the fault, Sentinels' and replicas' among them.
	Accepted int64 `json:"accepted_since_fault"`
	// Peak is the most between two looks, some 100 ms apart.
	Peak int64 `json:"peak_between_looks"`
}

// connects follows each node's counter from the last look before the fault. A restart begins a counter anew.
func (j *Journal) connects(m Marks) []Connects {
	var list []Connects
	if len(j.Rounds) == 0 {
		return nil
	}
	for _, node := range j.Rounds[0].Nodes {
		c := Connects{Node: node.Name}
		last := int64(-1)
		for _, r := range j.Rounds {
			now := r.node(node.Name)
			if now.Error != "" {
				continue
			}
			if last >= 0 && r.At >= m.Fault.At && m.Fault.Happened {
				grown := now.Accepted - last
				if grown < 0 {
					grown = now.Accepted
				}
				c.Accepted, c.Peak = c.Accepted+grown, max(c.Peak, grown)
			}
			last = now.Accepted
		}
		list = append(list, c)
	}
	return list
}
