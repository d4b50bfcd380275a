package vitals

import (
	"strconv"
	"strings"
)

// Server is what one master says about itself. What it does not tell is 0. Names follow INFO, whose documentation says
// more: https://redis.io/docs/latest/commands/info/.
type Server struct {
	// Replicas is how many are connected, Online how many of them have the data. Lag is the bytes that the one furthest
	// behind has not acknowledged, LagSeconds how long ago the most silent one was heard.
	Replicas, Online, Lag, LagSeconds int64
	// FullSyncs, PartialSyncs and RefusedSyncs count how replicas caught up.
	FullSyncs, PartialSyncs, RefusedSyncs int64
	// UsedMemory and MaxMemory are in bytes; MaxMemory is 0 for no limit. Fragmentation is the ratio to what the system
	// gave.
	UsedMemory, MaxMemory int64
	Fragmentation         float64
	// EvictedKeys and EvictedScripts count what had to go.
	EvictedKeys, EvictedScripts int64
	// Clients are connections; MaxClients is how many there may be.
	Clients, MaxClients int64
	// OpsPerSecond is the rate of commands of the last moments; InputBytes and OutputBytes are totals.
	OpsPerSecond, InputBytes, OutputBytes int64
	// LastForkMicros is how long the newest fork stopped the server. Saving is 1 while a snapshot or a rewrite runs.
	LastForkMicros, Saving int64
	// SlowCommands is the length of the slow log.
	SlowCommands int64
}

// Parse reads the text of INFO. Lines that it does not know, and numbers that are none, are passed over.
func Parse(text string) Server {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	number := func(name string) int64 {
		n, err := strconv.ParseInt(fields[name], 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	s := Server{
		Replicas:  number("connected_slaves"),
		FullSyncs: number("sync_full"), PartialSyncs: number("sync_partial_ok"), RefusedSyncs: number("sync_partial_err"),
		UsedMemory: number("used_memory"), MaxMemory: number("maxmemory"),
		EvictedKeys: number("evicted_keys"), EvictedScripts: number("evicted_scripts"),
		Clients: number("connected_clients"), MaxClients: number("maxclients"),
		OpsPerSecond: number("instantaneous_ops_per_sec"),
		InputBytes:   number("total_net_input_bytes"), OutputBytes: number("total_net_output_bytes"),
		LastForkMicros: number("latest_fork_usec"),
		Saving:         max(number("rdb_bgsave_in_progress"), number("aof_rewrite_in_progress")),
	}
	if ratio, err := strconv.ParseFloat(fields["mem_fragmentation_ratio"], 64); err == nil {
		s.Fragmentation = ratio
	}
	s.readReplicas(fields, number("master_repl_offset"))
	return s
}

// readReplicas reads lines like slave0:ip=10.0.0.7,port=6379,state=online,offset=70,lag=1.
func (s *Server) readReplicas(fields map[string]string, offset int64) {
	for i := range s.Replicas {
		line, ok := fields["slave"+strconv.FormatInt(i, 10)]
		if !ok {
			return
		}
		for pair := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(pair, "=")
			n, err := strconv.ParseInt(value, 10, 64)
			switch {
			case name == "state" && value == "online":
				s.Online++
			case name == "offset" && err == nil:
				s.Lag = max(s.Lag, offset-n)
			case name == "lag" && err == nil:
				s.LagSeconds = max(s.LagSeconds, n)
			}
		}
	}
}
