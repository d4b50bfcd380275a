package preflight

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/honestlimit/ratelimit/internal/redisstore"
)

// guest asks one server, as the service and as the admin.
type guest struct {
	s    *survey
	at   *server
	ours *session
	// admin is ours if there is no admin, or he is not let in.
	admin *session
}

// visit reaches the server and logs in. It returns nil, and the server says why, if that cannot be done.
func (s *survey) visit(ctx context.Context, at *server, watches bool) *guest {
	at.missing = map[part]string{}
	at.dialed = s.dialed(at.address)
	at.host = s.machine(ctx, at.dialed)
	target, err := s.target(at.address, asService, watches)
	if err != nil {
		at.err = reason(err)
		return nil
	}
	if at.certificate, err = s.knock(ctx, target); err != nil {
		at.err = "cannot be reached" + s.route(at) + ": " + plain(err)
		return nil
	}
	if at.certificate != nil && at.certificate.err != "" {
		at.err = "shows a certificate that is not to be trusted, so it is told nothing"
		return nil
	}
	g := &guest{s: s, at: at, ours: newSession(target, "our account", s.cfg.Timeout)}
	if at.err = g.greet(ctx, g.ours); at.err != "" {
		g.ours.close()
		return nil
	}
	g.admin = g.ours
	s.letInAdmin(ctx, g, watches)
	return g
}

// route says how the server's address is known, if it was not given to us as it is.
func (s *survey) route(at *server) string {
	switch {
	case at.dialed != at.address:
		return " at " + at.dialed + ", where --redis-nat has it"
	case s.setup != Standalone && !slices.Contains(s.seeds.Addresses, at.address):
		return " at the address that the others announce for it"
	default:
		return ""
	}
}

// greet is why the server does not answer a PING; empty if it does, or only forbids it.
func (g *guest) greet(ctx context.Context, as *session) string {
	_, err := as.ask(ctx, "ping")
	refused := refusal(err)
	switch {
	case err == nil, refused != nil && refused.forbidden():
		return ""
	case refused == nil:
		return reason(err)
	case refused.is("WRONGPASS"), refused.is("NOAUTH"), strings.Contains(refused.reply, "AUTH"):
		return "does not let " + as.who + " in: " + firstWord(refused.reply)
	default:
		return "answers " + refused.reply
	}
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

func (s *survey) letInAdmin(ctx context.Context, g *guest, watches bool) {
	if !s.cfg.hasAdmin() {
		return
	}
	target, err := s.target(g.at.address, asAdmin, watches)
	if err != nil {
		g.at.adminErr = reason(err)
		return
	}
	admin := newSession(target, "the admin", s.cfg.Timeout)
	if g.at.adminErr = g.greet(ctx, admin); g.at.adminErr != "" {
		admin.close()
		return
	}
	g.admin = admin
}

func (g *guest) close() {
	g.ours.close()
	if g.admin != g.ours {
		g.admin.close()
	}
}

// ask asks as the admin. What is not answered is noted as missing.
func (g *guest) ask(ctx context.Context, p part, args ...any) (any, bool) {
	return g.askAs(ctx, g.admin, p, args...)
}

// askEither asks as the service, and as the admin if the service may not: for what the service asks as well.
func (g *guest) askEither(ctx context.Context, p part, args ...any) (any, bool) {
	reply, err := g.ours.ask(ctx, args...)
	if err == nil {
		return reply, true
	}
	return g.ask(ctx, p, args...)
}

func (g *guest) askAs(ctx context.Context, as *session, p part, args ...any) (any, bool) {
	reply, err := as.ask(ctx, args...)
	if err != nil {
		g.at.missing[p] = reason(err)
		return nil, false
	}
	return reply, true
}

// knock opens a connection and looks at the certificate, if there is to be one. It errs only if nobody is there.
func (s *survey) knock(ctx context.Context, target redisstore.Target) (*certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, target.Network, target.Address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if target.TLS == nil {
		return nil, nil
	}
	// Whether it is to be trusted is found out below: the handshake must not end before it has been seen.
	lenient := target.TLS.Clone()
	lenient.InsecureSkipVerify = true //nolint:gosec // nothing that is worth anything is sent over this connection
	secure := tls.Client(conn, lenient)
	if err := secure.HandshakeContext(ctx); err != nil {
		return &certificate{err: "no TLS: " + plain(err)}, fmt.Errorf("TLS: %w", err)
	}
	converse(ctx, secure)
	return inspect(secure.ConnectionState().PeerCertificates, target.TLS), nil
}

// converse says something, and hears the answer, as a stranger. Redis counts whoever hangs up in the middle of a TLS
// handshake as rejected, and with TLS 1.3 that is not over when our half of it is.
func converse(ctx context.Context, conn net.Conn) {
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := conn.Write([]byte("PING\r\n")); err == nil {
		_, _ = conn.Read(make([]byte, 64)) // whatever it says
	}
}

// inspect judges a chain as a TLS client would.
func inspect(chain []*x509.Certificate, cfg *tls.Config) *certificate {
	if len(chain) == 0 {
		return &certificate{err: "shows no certificate"}
	}
	pool := x509.NewCertPool()
	for _, c := range chain[1:] {
		pool.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: cfg.RootCAs, Intermediates: pool, DNSName: cfg.ServerName,
	})
	found := &certificate{expires: chain[0].NotAfter}
	if err != nil {
		found.err = "the certificate is not to be trusted: " + err.Error()
	}
	return found
}

// isOpen tells whether a stranger is let in, even if only to be told what he may not do.
func (s *survey) isOpen(ctx context.Context, address string, watches bool) bool {
	target, err := s.target(address, asStranger, watches)
	if err != nil {
		return false
	}
	stranger := newSession(target, "a stranger", s.cfg.Timeout)
	defer stranger.close()
	_, err = stranger.ask(ctx, "ping")
	refused := refusal(err)
	return err == nil || refused != nil && refused.forbidden()
}

var errNoDryRun = errors.New("ACL DRYRUN cannot be used")

// dryRun asks the ACL about a command of the user. The error is errNoDryRun if it cannot be asked.
func (g *guest) dryRun(ctx context.Context, user string, w want) (grant, error) {
	result := grant{command: w.title, need: w.need}
	reply, err := g.admin.ask(ctx, append([]any{"acl", "dryrun", user}, w.args...)...)
	refused := refusal(err)
	switch {
	case refused != nil && (refused.forbidden() || strings.Contains(refused.reply, "subcommand")):
		return result, fmt.Errorf("%w: %w", errNoDryRun, err)
	case refused != nil: // the server has no such command
		result.refused = true
	case err != nil:
		return result, fmt.Errorf("%w: %w", errNoDryRun, err)
	case text(reply) != "OK":
		result.refused = true
	}
	return result, nil
}
