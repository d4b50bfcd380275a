package e2e_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/honestlimit/ratelimit/test/token"
)

// anonymous is the tenant of those who show no token.
const anonymous = "anonymous"

// claimant is a client who says who it is in some way.
type claimant struct {
	name    string
	headers []string
	// bucket is whose the charge must be; "" where the token is refused.
	bucket string
	// told is the tenant that the backend hears of.
	told string
}

// Whose bucket a request is charged to is decided by the token and by nothing else that a client can send.
func TestIdentity(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: complete})
	m.serve(t)
	acme, rival := m.newTenant(t), m.newTenant(t)
	spent := map[string]int{}
	for _, c := range slices.Concat(m.honest(t, "first", acme), m.forged(t, acme, rival), m.honest(t, "last", rival)) {
		t.Run(c.name, func(t *testing.T) {
			got, where := m.count(t, errand{Path: pdftalk.path, Headers: c.headers})
			if c.bucket == "" {
				check(t, "a bad token", seen{
					Status: 401, Body: `{"detail": "token is not valid"}`, ContentType: "application/json",
					Proof: proof{none, none, none}, Counted: counts{},
				}, got)
				if !strings.HasPrefix(where.Details, "jwt_authn_access_denied") {
					t.Errorf("the access log says %+v", where)
				}
				return
			}
			spent[c.bucket]++
			want := allowed(pdftalk, limits{hourly, strconv.Itoa(1000 - spent[c.bucket]), got.Limit.Reset})
			check(t, "charged to "+c.bucket, want, got)
			if told := m.backends[pdftalk.service].Calls().Tenant; told != c.told {
				t.Errorf("the backend was told of tenant %q, want %q", told, c.told)
			}
		})
	}
	if spent[acme] < 2 || spent[anonymous] < 2 {
		t.Errorf("charges = %v: no bucket was charged twice", spent)
	}
}

// hourly is x-ratelimit-limit of pdftalk in complete.
const hourly = `1000, 1000;w=3600;name="pdftalk.ingest"`

func (m *mesh) honest(t *testing.T, when, tenant string) []claimant {
	t.Helper()
	return []claimant{
		{when + ": a good token", m.as(t, tenant), tenant, tenant},
		{when + ": no token", nil, anonymous, ""},
		{when + ": no bearer", []string{"authorization", "Basic YWNtZTphY21l"}, anonymous, ""},
	}
}

// forged are the ways to pass for somebody else, or for nobody. All come with claims in headers that Envoy must not
// believe.
func (m *mesh) forged(t *testing.T, tenant, rival string) []claimant {
	t.Helper()
	stranger, err := token.New()
	if err != nil {
		t.Fatal(err)
	}
	lies := []string{
		"x-tenant", rival, "tenant", rival, "x-jwt-payload", rival, "x-forwarded-for", "10.1.2.3",
		"x-envoy-force-trace", "1", "decision", "ALLOWED", "x-ratelimit-decision", "ALLOWED",
	}
	good, err := m.bearer(tenant)
	if err != nil {
		t.Fatal(err)
	}
	in := func(d time.Duration) *jwt.NumericDate { return jwt.NewNumericDate(time.Now().Add(d)) }
	list := []claimant{
		{"forged headers beside a good token", m.as(t, tenant), tenant, tenant},
		{"forged headers alone", nil, anonymous, ""},
		{"a stranger's token", m.signed(t, stranger, claims(rival, in(time.Hour))), "", ""},
		{"a good and a stranger's token", append(m.as(t, tenant), m.signed(t, stranger, claims(rival, in(time.Hour)))...), "", ""},
		{"expired", m.signed(t, m.issuer, claims(tenant, in(-time.Hour))), "", ""},
		{"not yet good", m.signed(t, m.issuer, with(claims(tenant, in(2*time.Hour)), "nbf", in(time.Hour))), "", ""},
		{"good for ever", m.signed(t, m.issuer, without(claims(tenant, nil), "exp")), "", ""},
		{"another audience", m.signed(t, m.issuer, with(claims(tenant, in(time.Hour)), "aud", "other")), "", ""},
		{"no audience", m.signed(t, m.issuer, without(claims(tenant, in(time.Hour)), "aud")), "", ""},
		{"another issuer", m.signed(t, m.issuer, with(claims(tenant, in(time.Hour)), "iss", "https://other.invalid")), "", ""},
		{"another subject under a good signature", bearing(forgeSubject(t, good, rival)), "", ""},
		{"no signature", bearing(good[:strings.LastIndex(good, ".")+1]), "", ""},
		{"algorithm none", bearing(forgeNone(rival, in(time.Hour))), "", ""},
		{"signed with the public key", bearing(m.forgeHMAC(t, rival, in(time.Hour))), "", ""},
		{"junk", bearing("junk"), "", ""},
		{"a bearer of nothing", bearing(""), anonymous, ""},
		{"subject empty", m.signed(t, m.issuer, with(claims("", in(time.Hour)), "sub", "")), anonymous, ""},
		{"no subject", m.signed(t, m.issuer, without(claims("", in(time.Hour)), "sub")), anonymous, ""},
		{"subject is a list", m.signed(t, m.issuer, with(claims("", in(time.Hour)), "sub", []string{tenant})), "", ""},
	}
	for i := range list {
		list[i].headers = append(list[i].headers, lies...)
	}
	return list
}

// Who shows no token shares one bucket of each endpoint with all others who do not.
func TestIdentity_AnonymousShareABucket(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: complete})
	m.serve(t)
	for _, left := range []string{"2", "1", "0"} {
		got, _ := m.count(t, errand{Path: resumint.path, Headers: []string{"x-tenant", m.newTenant(t)}})
		check(t, "anonymous", allowed(resumint, limits{minutely, left, got.Limit.Reset}), got)
	}
	got, _ := m.count(t, errand{Path: resumint.path, Headers: []string{"x-tenant", m.newTenant(t)}})
	want := limited(resumint, "none", got.RetryAfter, limits{minutely, "0", got.Limit.Reset})
	check(t, "anonymous, once too often", want, got)
	if wait, err := strconv.Atoi(got.RetryAfter); err != nil || wait < 1 || wait > 60 {
		t.Errorf("Retry-After is %q, want up to the minute in which a token comes back", got.RetryAfter)
	}
	m.checkLeft(t, resumint, m.newTenant(t), "2")
	m.service.awaitLog(t, line{"message": "request denied", "endpoint_id": resumint.id, "reason": "RATE_LIMITED"})
}

// minutely is x-ratelimit-limit of resumint in complete.
const minutely = `3, 3;w=180;name="resumint.tailor"`

// A token that the service cannot take is no way around it: fail_closed is refused, fail_open metered by Envoy.
func TestIdentity_SubjectTooLong(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: complete})
	s := m.serve(t)
	tenant := m.secrets.keep(strings.Repeat("long", 1025)) // one entry more than rls.MaxText allows
	before := s.metrics(t)
	got, where := m.count(t, m.by(t, pdftalk, tenant))
	want := refusedUndecided()
	want.Counted = counts{}
	check(t, "fail_closed", want, got)
	if want := (route{pdftalk.service, "RLSE", "rate_limiter_error"}); where != want {
		t.Errorf("the access log says %+v, want %+v", where, want)
	}
	got, _ = m.count(t, m.by(t, resumint, tenant))
	want = passedUndecided(resumint)
	want.Counted = counts{}
	check(t, "fail_open", want, got)
	gained := s.metrics(t).since(before, "ratelimit_rpcs_total")
	if n := gained.sum("ratelimit_rpcs_total", `code="InvalidArgument"`); n != 2 {
		t.Errorf("calls counted: %v, want two of InvalidArgument", gained)
	}
}

// A route that nobody gave a limit has one all the same, for all callers together, and fails closed.
func TestForgottenRoute(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: strings.Replace(complete, "burst: 100", "burst: 5", 1)})
	st := newStore(t, m.secrets)
	m.serve(t, append(st.at(st.URL()), neverOpens)...) // the first of the 5 was taken by looking whether it serves
	const daily = `5, 5;w=432000;name="default"`
	for _, left := range []string{"3", "2", "1", "0"} {
		got, where := m.count(t, errand{Path: metered.path, Headers: m.as(t, m.newTenant(t), "x-pages", "400")})
		check(t, "the default policy", allowed(metered, limits{daily, left, got.Limit.Reset}), got)
		if where.Name != "forgotten" {
			t.Errorf("it went by the route %q", where.Name)
		}
	}
	got, _ := m.count(t, m.by(t, metered, m.newTenant(t)))
	check(t, "once too often", limited(metered, "none", got.RetryAfter, limits{daily, "0", got.Limit.Reset}), got)
	st.Kill()
	m.awaitCause(t, "dial")
	got, _ = m.count(t, m.by(t, metered, m.newTenant(t)))
	check(t, "without its store", unavailable(metered, failClosed, "dial"), got)
}

func claims(tenant string, until *jwt.NumericDate) map[string]any {
	return map[string]any{"iss": token.IssuerName, "aud": token.Audience, "sub": tenant, "exp": until}
}

func with(c map[string]any, name string, value any) map[string]any {
	c[name] = value
	return c
}

func without(c map[string]any, name string) map[string]any {
	delete(c, name)
	return c
}

func (m *mesh) signed(t *testing.T, i *token.Issuer, c map[string]any) []string {
	t.Helper()
	text, err := i.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	return bearing(m.secrets.keep(text))
}

func bearing(text string) []string { return []string{"authorization", "Bearer " + text} }

// forgeSubject swaps the claims under somebody's signature.
func forgeSubject(t *testing.T, good, tenant string) string {
	t.Helper()
	part := strings.Split(good, ".")
	if len(part) != 3 {
		t.Fatalf("a token has %d parts, want 3", len(part))
	}
	part[1] = encoded(claims(tenant, jwt.NewNumericDate(time.Now().Add(time.Hour))))
	return strings.Join(part, ".")
}

func forgeNone(tenant string, until *jwt.NumericDate) string {
	return encoded(map[string]string{"alg": "none", "typ": "JWT"}) + "." + encoded(claims(tenant, until)) + "."
}

// forgeHMAC takes the issuer's public key for a shared secret, which a careless verifier would do as well.
func (m *mesh) forgeHMAC(t *testing.T, tenant string, until *jwt.NumericDate) string {
	t.Helper()
	public, err := m.issuer.KeySet()
	if err != nil {
		t.Fatal(err)
	}
	signed := encoded(map[string]string{"alg": "HS256", "typ": "JWT"}) + "." + encoded(claims(tenant, until))
	mac := hmac.New(sha256.New, public)
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of texts and numbers
	}
	return base64.RawURLEncoding.EncodeToString(b)
}
