// Package token makes what the trial's Envoy needs to know who is calling: a signing key, the key set that Envoy
// verifies tokens with, and tokens for tenants. It knows no HTTP and no Envoy. An Issuer is safe for concurrent use.
//
// It stands in for an identity provider in trials and tests. The service itself never sees a token.
package token

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Names that envoy/envoy.yaml expects in a token.
const (
	IssuerName = "https://issuer.trial.invalid"
	Audience   = "mesh"
)

// Files of an issuer, inside its directory. KeySetFile is public, KeyFile is not.
const (
	KeySetFile = "jwks.json"
	KeyFile    = "key.pem"
)

const keyID = "trial"

// Issuer signs tokens with one ECDSA P-256 key. Make one with New or Open.
type Issuer struct {
	key    *ecdsa.PrivateKey
	signer jose.Signer
}

// New returns an issuer with a key of its own, which is kept nowhere.
func New() (*Issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("token: make a key: %w", err)
	}
	return newIssuer(key)
}

// Open returns the issuer whose files are in dir, and makes dir and the files where they are missing. The key set
// is written each time, so that it always belongs to the key.
func Open(dir string) (*Issuer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	i, err := openKey(filepath.Join(dir, KeyFile))
	if err != nil {
		return nil, err
	}
	set, err := i.KeySet()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, KeySetFile), set, 0o644); err != nil {
		return nil, fmt.Errorf("token: write the key set: %w", err)
	}
	return i, nil
}

func openKey(path string) (*Issuer, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("token: %s holds no PEM block: delete it to get a new key", path)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("token: read %s: %w", path, err)
	}
	return newIssuer(key)
}

func createKey(path string) (*Issuer, error) {
	i, err := New()
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(i.key)
	if err != nil {
		return nil, fmt.Errorf("token: encode the key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("token: write the key: %w", err)
	}
	return i, nil
}

func newIssuer(key *ecdsa.PrivateKey) (*Issuer, error) {
	options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", keyID)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, options)
	if err != nil {
		return nil, fmt.Errorf("token: make a signer: %w", err)
	}
	return &Issuer{key: key, signer: signer}, nil
}

// KeySet is the public key as the JSON of an RFC 7517 key set.
func (i *Issuer) KeySet() ([]byte, error) {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: i.key.Public(), KeyID: keyID, Algorithm: string(jose.ES256), Use: "sig"},
	}}
	text, err := json.MarshalIndent(set, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("token: encode the key set: %w", err)
	}
	return append(text, '\n'), nil
}

// Token returns a signed token whose subject is tenant and which is good from now on for life; a negative life makes
// one that has expired.
func (i *Issuer) Token(tenant string, life time.Duration) (string, error) {
	now := time.Now()
	return i.Sign(jwt.Claims{
		Issuer:   IssuerName,
		Audience: jwt.Audience{Audience},
		Subject:  tenant,
		IssuedAt: jwt.NewNumericDate(now),
		Expiry:   jwt.NewNumericDate(now.Add(life)),
	})
}

// Sign returns a token with exactly these claims, which need not be good ones.
func (i *Issuer) Sign(claims any) (string, error) {
	text, err := jwt.Signed(i.signer).Claims(claims).Serialize()
	if err != nil {
		return "", fmt.Errorf("token: sign: %w", err)
	}
	return text, nil
}
