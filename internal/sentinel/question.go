package sentinel

import "time"

// answer is what a Sentinel said to one question.
type answer struct {
	claim
	asked    time.Time // when the question was sent
	state    masterState
	detailed bool // the three below were asked for
	peers    []peer
	replicas []Replica
	quorum   Quorum // zero if it was not asked for
	trouble  error  // why a part that is not vital is missing
}

// questioner asks a Sentinel about the master. Not safe for concurrent use.
type questioner struct {
	*wire
	cfg             *Config
	details, quorum time.Time // when they were last asked for
}

// question asks who the master is, and for the rest if that is due.
func (q *questioner) question() (answer, error) {
	for range 3 {
		a, torn, err := q.try()
		if !torn || err != nil {
			return a, err
		}
	}
	return answer{}, errTorn
}

// try asks once. The address is asked for before and after the epoch: while a failover ends, SENTINEL MASTER still has
// the old address under the new epoch, and a change in between would join what does not belong together.
func (q *questioner) try() (a answer, torn bool, err error) {
	name := q.cfg.Master
	address := []string{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name}
	commands := [][]string{address, {"SENTINEL", "MASTER", name}, address}
	a.asked = time.Now()
	// Half an interval, for the pauses between questions are jittered by as much.
	a.detailed = a.asked.Sub(q.details) >= q.cfg.PollInterval/2
	withQuorum := a.asked.Sub(q.quorum) >= q.cfg.QuorumInterval
	if a.detailed {
		q.details = a.asked
		commands = append(commands, []string{"SENTINEL", "SENTINELS", name}, []string{"SENTINEL", "REPLICAS", name})
	}
	if withQuorum {
		q.quorum = a.asked
		commands = append(commands, []string{"SENTINEL", "CKQUORUM", name})
	}
	replies, err := q.ask(commands...)
	if err != nil {
		return answer{}, false, err
	}
	if torn, err = a.readMaster(replies[:3]); err != nil {
		return answer{}, false, err
	}
	a.readRest(replies[3:], withQuorum)
	return a, torn, nil
}

func (a *answer) readMaster(replies []any) (torn bool, err error) {
	if a.master, err = parseAddress(replies[0]); err != nil {
		return false, err
	}
	if a.state, err = parseMaster(replies[1]); err != nil {
		return false, err
	}
	a.epoch = a.state.epoch
	after, err := parseAddress(replies[2])
	return after != a.master, err
}

// readRest reads what the watch can do without, as it must where the account may not ask for it.
func (a *answer) readRest(replies []any, withQuorum bool) {
	note := func(err error) {
		if err != nil {
			a.trouble = err
		}
	}
	var err error
	if a.detailed {
		a.peers, err = parsePeers(replies[0])
		note(err)
		a.replicas, err = parseReplicas(replies[1])
		note(err)
	}
	if withQuorum {
		a.quorum, err = parseQuorum(replies[len(replies)-1])
		note(err)
	}
}
