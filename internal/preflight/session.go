package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/redisstore"
)

// session is one account's connection to one server. The first question that is not answered ends it, so a server that
// hangs costs one time-out and not one for each question. Not safe for concurrent use.
type session struct {
	client  *redis.Client
	timeout time.Duration
	who     string
	secret  string
	dead    error
}

func newSession(target redisstore.Target, who string, timeout time.Duration) *session {
	return &session{
		client: redisstore.NewClient(target, timeout), timeout: timeout, who: who, secret: string(target.Password),
	}
}

func (s *session) close() { _ = s.client.Close() } // a connection that is broken cannot do more than be forgotten

// ask sends a command and returns what it is answered. An error reply is a *refusalError.
func (s *session) ask(ctx context.Context, args ...any) (any, error) {
	if s.dead != nil {
		return nil, s.dead
	}
	run := ctx
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	reply, err := s.client.Do(ctx, args...).Result()
	var refused redis.Error
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return reply, nil
	case errors.As(err, &refused):
		return nil, s.refused(refused, args)
	case run.Err() != nil:
		s.dead = errors.New("was not asked everything: the run was over")
		return nil, s.dead
	default:
		s.dead = fmt.Errorf("does not answer %s: %s", name(args), plain(err))
		return nil, s.dead
	}
}

// subscribe is ask for PSUBSCRIBE to one pattern, on a connection of its own.
func (s *session) subscribe(ctx context.Context, args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	events := s.client.PSubscribe(ctx, fmt.Sprint(args[1]))
	defer func() { _ = events.Close() }()
	reply, err := events.ReceiveTimeout(ctx, s.timeout)
	var refused redis.Error
	if errors.As(err, &refused) {
		return nil, s.refused(refused, args)
	}
	return reply, err
}

// refused is what the server said to a command. Servers quote what they do not understand, AUTH for one.
func (s *session) refused(said redis.Error, args []any) *refusalError {
	reply := said.Error()
	if s.secret != "" {
		reply = strings.ReplaceAll(reply, s.secret, "[password]")
	}
	return &refusalError{who: s.who, command: name(args), reply: reply}
}

// name is the command without arguments; the second word of a command that has subcommands belongs to it.
func name(args []any) string {
	words := []string{strings.ToUpper(fmt.Sprint(args[0]))}
	switch words[0] {
	case "CONFIG", "ACL", "CLIENT", "CLUSTER", "LATENCY", "SCRIPT", "SENTINEL", "SLOWLOG":
		words = append(words, strings.ToUpper(fmt.Sprint(args[1])))
	}
	if words[len(words)-1] == "CONFIG" {
		words = append(words, "GET")
	}
	return strings.Join(words, " ")
}

// refusalError is an error reply.
type refusalError struct{ who, command, reply string }

// Error says what was refused and why.
func (e *refusalError) Error() string {
	if e.forbidden() {
		return fmt.Sprintf("not permitted: %s may not send %s", e.who, e.command)
	}
	return fmt.Sprintf("%s: %s", e.command, e.reply)
}

// forbidden tells whether the account is what is missing.
func (e *refusalError) forbidden() bool { return e.is("NOPERM") }

// is tells whether the reply begins with the code.
func (e *refusalError) is(code string) bool {
	return strings.HasPrefix(e.reply, code+" ") || e.reply == code
}

// unknown tells whether the server is too old for the command, or has renamed it.
func (e *refusalError) unknown() bool { return strings.Contains(strings.ToLower(e.reply), "unknown") }

// refusal is the error reply in err; nil if it is none.
func refusal(err error) *refusalError {
	var refused *refusalError
	if errors.As(err, &refused) {
		return refused
	}
	return nil
}

// plain shortens the errors of networks.
func plain(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "it takes too long"
	}
	text := err.Error()
	if strings.Contains(text, "i/o timeout") {
		return "it takes too long"
	}
	return text
}
