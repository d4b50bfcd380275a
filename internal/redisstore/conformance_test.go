package redisstore_test

import (
	"testing"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/storetest"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

func TestStore_Conforms(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	for name, lanes := range map[string]int{"one lane": 1, "three lanes": 3} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) failure.Store {
				cfg := quick()
				cfg.Lanes = lanes
				return run(t, at(t, server.URL()), cfg).serving()
			})
		})
	}
}

// TestStore_SpeaksEveryTransport checks each way to reach a server with the credentials it asks for.
func TestStore_SpeaksEveryTransport(t *testing.T) {
	certs := redistest.NewCertificates(t)
	for name, c := range map[string]struct {
		server redistest.Config
		access redisstore.Access
	}{
		"unix socket": {server: redistest.Config{Unix: true}},
		"unix socket with password": {
			server: redistest.Config{Unix: true, Password: "s3cret"}, access: redisstore.Access{Password: "s3cret"},
		},
		"tls with client certificate": {
			server: redistest.Config{TLS: certs},
			access: redisstore.Access{
				CAFile: certs.CAFile, CertFile: certs.ClientCertFile, KeyFile: certs.ClientKeyFile,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, c.server)
			r := run(t, standalone(t, server.URL(), c.access), quick()).serving()
			if got := r.ask(); got != failure.CauseNone {
				t.Errorf("a call failed of %v: %+v", got, r.Stats().LastError)
			}
		})
	}
}
