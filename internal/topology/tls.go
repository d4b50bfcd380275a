package topology

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS names PEM files. Servers present Server and ask clients, each other among them, for a certificate of the CA.
type TLS struct {
	// CAFile vouches for both certificates.
	CAFile string
	// ServerCertFile must be good for 127.0.0.1, and for clients as well: replicas and Sentinels present it.
	ServerCertFile, ServerKeyFile string
	// ClientCertFile is what this package's own clients present.
	ClientCertFile, ClientKeyFile string
}

// client is nil for a nil TLS.
func (t *TLS) client() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(t.ClientCertFile, t.ClientKeyFile)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	ca, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("topology: no certificate in the CA file")
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// lines make a server speak TLS only, at port.
func (t *TLS) lines(port string) []string {
	if t == nil {
		return []string{"port " + port}
	}
	return []string{
		"port 0", "tls-port " + port, "tls-replication yes", "tls-ca-cert-file " + t.CAFile,
		"tls-cert-file " + t.ServerCertFile, "tls-key-file " + t.ServerKeyFile,
	}
}
