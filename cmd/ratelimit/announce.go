package main

import "time"

// announcedPolicies is the number of policies that are told one by one at the start; /policies shows all.
const announcedPolicies = 50

// envoyTimeout is what Envoy's filter waits for an answer unless it is told otherwise.
const envoyTimeout = 20 * time.Millisecond

// announce logs what is enforced, where, on which store, and what is worth a warning.
func (s *service) announce() {
	b := build()
	s.log.Info().
		Str("version", b.Version).
		Str("grpc", s.listener.grpc.Addr().String()).
		Str("admin", s.listener.admin.Addr().String()).
		Str("store", s.backing.name).
		Stringer("budget", s.flags.Budget).
		Str("deny", s.flags.Deny).
		Str("policies", s.flags.Policies).
		Msg("serving")
	s.announcePolicies()
	for _, w := range s.flags.warnings() {
		s.log.Warn().Str("flag", w.flag).Msg(w.text)
	}
}

func (s *service) announcePolicies() {
	told := 0
	set := s.policies.Current()
	for _, name := range set.Domains() {
		d := set.Domain(name)
		policies := d.Policies()
		s.log.Info().Str("domain", name).Str("version", d.Version()).Int("policies", len(policies)).Msg("enforcing")
		for _, p := range policies[:min(len(policies), announcedPolicies-told)] {
			told++
			s.log.Info().
				Str("domain", name).
				Str("endpoint_id", p.Endpoint.ID).
				Stringer("descriptor", p.Pattern).
				Str("limit", describeLimit(p.Limit)).
				Str("store_away", describeFailMode(p.Endpoint)).
				Msg("policy")
		}
	}
}

// warning is something that works, but perhaps not as intended.
type warning struct{ flag, text string }

func (c *serveCmd) warnings() []warning {
	all := [...]struct {
		applies bool
		warning
	}{
		{c.Redis == "", warning{"--redis", "limits are kept in this process: every replica has its own, and a restart " +
			"forgets them"}},
		{c.Redis != "" && c.Budget > envoyTimeout*3/4, warning{"--budget", "Envoy gives up after 20ms unless its " +
			"ratelimit filter sets a timeout: set one well above the budget, for example timeout: 0.050s"}},
		{c.GRPCCert == "" && isPublic(c.GRPC), warning{"--grpc", "plain text on an address that others can reach: " +
			"anyone there can read and spend every limit; use --grpc-cert, --grpc-key and --grpc-client-ca"}},
		{c.GRPCCert != "" && c.GRPCClientCA == "" && isPublic(c.GRPC), warning{"--grpc-client-ca", "callers need no " +
			"certificate: anyone who reaches the address can spend every limit"}},
		{isPublic(c.Admin), warning{"--admin", "the admin port has no authentication and others can reach it: they " +
			"see every policy"}},
	}
	var list []warning
	for _, w := range all {
		if w.applies {
			list = append(list, w.warning)
		}
	}
	return list
}
