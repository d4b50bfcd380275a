package journal

// StreamPhases is what came back for one endpoint.
type StreamPhases struct {
	// Stream is its id, FailMode what becomes of its requests without the store.
	Stream   string  `json:"stream"`
	FailMode string  `json:"fail_mode,omitempty"`
	Phases   []Phase `json:"phases"`
}

func (j *Journal) byStream(m Marks) []StreamPhases {
	list := make([]StreamPhases, len(j.Streams))
	for i, s := range j.Streams {
		list[i] = StreamPhases{Stream: s.Name, FailMode: s.FailMode, Phases: j.phases(m, from(i))}
	}
	return list
}
