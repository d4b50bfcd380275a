package token_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/honestlimit/ratelimit/test/token"
)

func TestIssuer_KeySetVerifiesItsTokens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	issuer, err := token.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := verify(t, dir, issue(t, issuer, "acme", time.Hour))
	if err != nil {
		t.Fatalf("the issuer's own token is refused: %v", err)
	}
	if claims.Subject != "acme" {
		t.Errorf("subject = %q, want acme", claims.Subject)
	}
	want := jwt.Expected{Issuer: token.IssuerName, AnyAudience: jwt.Audience{token.Audience}}
	if err := claims.ValidateWithLeeway(want, 0); err != nil {
		t.Errorf("claims: %v", err)
	}
}

func TestIssuer_KeepsItsKey(t *testing.T) {
	dir := t.TempDir()
	first, err := token.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	text := issue(t, first, "acme", time.Hour)
	if _, err := token.Open(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := verify(t, dir, text); err != nil {
		t.Errorf("a token made before the second Open is refused: %v", err)
	}
}

func TestIssuer_ForeignTokenIsRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := token.Open(dir); err != nil {
		t.Fatal(err)
	}
	other, err := token.New()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verify(t, dir, issue(t, other, "acme", time.Hour)); err == nil {
		t.Error("another issuer's token verifies with this key set")
	}
}

func TestIssuer_KeyIsPrivate(t *testing.T) {
	dir := t.TempDir()
	if _, err := token.Open(dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, token.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("the key's mode is %v, want 0600", got)
	}
}

func TestOpen_NamesTheFileItCannotRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, token.KeyFile)
	if err := os.WriteFile(path, []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := token.Open(dir); err == nil {
		t.Error("a key file without a key is accepted")
	}
}

func issue(t *testing.T, i *token.Issuer, tenant string, life time.Duration) string {
	t.Helper()
	text, err := i.Token(tenant, life)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// verify checks text against the key set in dir, as Envoy does.
func verify(t *testing.T, dir, text string) (jwt.Claims, error) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, token.KeySetFile))
	if err != nil {
		t.Fatal(err)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	var claims jwt.Claims
	return claims, parsed.Claims(set, &claims)
}
