package preflight

import (
	"context"

	"github.com/honestlimit/ratelimit/internal/redisstore"
)

// guise is as whom a server is asked.
type guise uint8

const (
	asService guise = 1 + iota
	asAdmin
	asStranger
)

// target is the data node at address, or the Sentinel.
func (s *survey) target(address string, as guise, watches bool) (redisstore.Target, error) {
	if s.setup == Standalone {
		if as == asAdmin {
			return s.boss.Resolve(context.Background())
		}
		t, err := s.alone.Resolve(context.Background())
		return strange(t, as), err
	}
	access := s.cfg.Data
	if watches {
		access = s.cfg.Sentinels
	}
	if as == asAdmin {
		access.Username, access.Password, access.PasswordFile =
			s.cfg.Admin.Username, s.cfg.Admin.Password, s.cfg.Admin.PasswordFile
	}
	t, err := access.Target(s.dialed(address))
	if !watches {
		t.DB = s.db
	}
	return strange(t, as), err
}

func strange(t redisstore.Target, as guise) redisstore.Target {
	if as == asStranger {
		t.Username, t.Password = "", ""
	}
	return t
}
