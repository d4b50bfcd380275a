package e2e_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/redistest"
)

// row is a way in which a store fails, and what then becomes of requests. The reasons are the specification's, copied
// by hand: they must not be taken from the code that is under test.
type row struct {
	fault string
	stage stager
	// open and closed are the reasons of a fail_open and a fail_closed request, cause the finer cause of both.
	open, closed, cause string
	// noticed waits for the moment from which the answers are those of the row. Nil: at once.
	noticed func(*testing.T, *service)
}

const (
	timeout    = "REDIS_TIMEOUT"
	connection = "REDIS_CONNECTION_ERROR"
	noScript   = "REDIS_NOSCRIPT_RETRY"
	failClosed = "FAIL_CLOSED"
	circuit    = "CIRCUIT_OPEN"

	emergencyLimit = "EMERGENCY_LOCAL_LIMIT"
)

// lost waits until the service has no connection left, and has then failed for that cause to get another.
func lost(cause string) func(*testing.T, *service) {
	return func(t *testing.T, s *service) {
		t.Helper()
		const dials = "ratelimit_store_dials_total"
		redistest.Eventually(t, "the connections to be lost", func() bool { return s.connected(t) == 0 })
		label := `cause="` + cause + `"`
		s.awaitMetric(t, s.metrics(t).sum(dials, label)+1, dials, label)
	}
}

var rows = []row{
	// Timeouts: the budget cannot be met.
	{"frozen Redis", frozen, timeout, failClosed, "deadline", nil},
	{
		"always 30 ms late", weather(func(p *redistest.Proxy) { p.Delay(30 * time.Millisecond) }),
		timeout, failClosed, "deadline", nil,
	},
	{
		"replies drip byte by byte", weather(func(p *redistest.Proxy) { p.Drip(5 * time.Millisecond) }),
		timeout, failClosed, "deadline", nil,
	},
	{"half-open connection", weather((*redistest.Proxy).Blackhole), timeout, failClosed, "deadline", nil},

	// The store cannot be reached.
	{"killed Redis", killed, connection, failClosed, "dial", lost("dial")},
	{"hangs up", says(redistest.HangUp), connection, failClosed, "reset", nil},
	{
		"no room for a client", byCommand(
			[]string{"CONFIG SET maxclients 1", "CLIENT KILL USER " + user}, []string{"CONFIG SET maxclients 1000"}),
		connection, failClosed, "max_clients", lost("max_clients"),
	},
	{"password demanded", noPassword, connection, failClosed, "auth", lost("auth")},
	{"password changed", wrongPassword, connection, failClosed, "auth", lost("auth")},

	// The store answers, but not with a decision.
	{
		"replica", byCommand([]string{"REPLICAOF 127.0.0.1 1"}, []string{"REPLICAOF NO ONE"}),
		connection, failClosed, "readonly", nil,
	},
	{
		"replica without master", byCommand(
			[]string{"CONFIG SET replica-serve-stale-data no", "REPLICAOF 127.0.0.1 1"}, []string{"REPLICAOF NO ONE"}),
		connection, failClosed, "masterdown", nil,
	},
	{
		"too few replicas", byCommand(
			[]string{"CONFIG SET min-replicas-to-write 1"}, []string{"CONFIG SET min-replicas-to-write 0"}),
		connection, failClosed, "noreplicas", nil,
	},
	{
		"out of memory", byCommand([]string{"CONFIG SET maxmemory 1"}, []string{"CONFIG SET maxmemory 0"}),
		connection, failClosed, "oom", nil,
	},
	{"failed snapshot", failedSnapshot, connection, failClosed, "misconf", nil},
	{"hung script", hungScript, connection, failClosed, "busy", nil},
	{
		"script forbidden", byCommand(
			[]string{"ACL SETUSER limiter -evalsha"}, []string{"ACL SETUSER limiter +evalsha"}),
		connection, failClosed, "noperm", nil,
	},
	{
		"a command of the script forbidden", byCommand(
			[]string{"ACL SETUSER limiter -set"}, []string{"ACL SETUSER limiter +set"}),
		connection, failClosed, "noperm", nil,
	},
	{
		"a script that fails", says("-ERR user_script:1: attempt to call a nil value script: f00, on @user_script:1.\r\n"),
		connection, failClosed, "script", nil,
	},
	{
		"loading", says("-LOADING Redis is loading the dataset in memory\r\n"),
		connection, failClosed, "loading", nil,
	},
	{"cluster down", says("-CLUSTERDOWN Hash slot not served\r\n"), connection, failClosed, "clusterdown", nil},
	{"slot moved", says("-MOVED 3999 127.0.0.1:1\r\n"), connection, failClosed, "moved", nil},
	{
		"slot in migration", says("-TRYAGAIN Multiple keys request during rehashing of slot\r\n"),
		connection, failClosed, "tryagain", nil,
	},
	{
		"an error of the future", says("-TOOLATE this word is not in use yet\r\n"),
		connection, failClosed, "other", nil,
	},
	{"garbage", says("HTTP/1.1 400 Bad Request\r\n"), connection, failClosed, "protocol", nil},
	{"a reply of another shape", says("+OK\r\n"), connection, failClosed, "protocol", nil},

	// The script is gone, and may not be brought back.
	{
		"script lost", byCommand(
			[]string{"ACL SETUSER limiter -script|load", "SCRIPT FLUSH"}, []string{"ACL SETUSER limiter +script|load"}),
		noScript, failClosed, "noscript", nil,
	},
}

// Each row is asked for both endpoints while the breaker stays closed, so that the row itself is seen, and then again
// until the breaker opens. Each time the service recovers by itself once the fault is lifted.
func TestTable(t *testing.T) {
	m := newMesh(t, meshConfig{})
	for _, r := range rows {
		t.Run(r.fault, func(t *testing.T) {
			st := r.stage(t, m.secrets)
			t.Run("the row", func(t *testing.T) { m.testRow(t, r, st, neverOpens) })
			t.Run("the breaker", func(t *testing.T) { m.testOpening(t, r, st) })
		})
	}
}

// A Redis that stays frozen while nobody asks anything loses its connections in the end. It cannot be reached then, but
// for the same reason as before: it does not answer in time.
func TestTable_FrozenForLong(t *testing.T) {
	m := newMesh(t, meshConfig{})
	m.testRow(t, row{
		closed: failClosed, open: timeout, cause: "io_timeout", noticed: lost("io_timeout"),
	}, frozen(t, m.secrets), neverOpens)
}

// Keys that hold something else are the trouble of their own requests. The store works, so the breaker stays closed,
// however many there are.
func TestTable_ForeignKeys(t *testing.T) {
	m := newMesh(t, meshConfig{})
	st := foreignKeys(t, m.secrets)
	hit := st.hit
	st.hit = func() {
		hit()
		for range 20 {
			m.ask(t, resumint, question{})
		}
	}
	m.testRow(t, row{open: connection, closed: failClosed, cause: "script"}, st)
}

// --deny=over_limit is for Envoys whose filter may not deny by itself: the client sees the same 503, and Envoy knows
// why.
func TestDenyOverLimit(t *testing.T) {
	m := newMesh(t, meshConfig{})
	st := newStore(t, m.secrets)
	m.serve(t, append(st.at(st.URL()), neverOpens, "--deny", "over_limit")...)
	m.awaitHealthy(t)
	st.Freeze()
	want := unavailable(pdftalk, failClosed, "deadline")
	want.Proof = proof{failClosed, "deadline", pdftalk.id}
	want.Decision, want.Limited = failClosed, "true"
	check(t, "fail_closed", want, m.watch(t, pdftalk, question{}))
	check(t, "fail_open", admittedWithoutStore(resumint, timeout, "deadline"), m.watch(t, resumint, question{}))
	st.Thaw()
	m.awaitHealthy(t)
}

// testRow asks once for each endpoint, with a breaker that further flags may change; it must never move.
func (m *mesh) testRow(t *testing.T, r row, st stage, flags ...string) {
	s := m.serve(t, append(st.flags, flags...)...)
	m.awaitHealthy(t)
	st.hit()
	if r.noticed != nil {
		r.noticed(t, s)
	}
	denied := s.denials()
	check(t, "fail_closed", unavailable(pdftalk, r.closed, r.cause), m.watch(t, pdftalk, question{}))
	check(t, "fail_open", admittedWithoutStore(resumint, r.open, r.cause), m.watch(t, resumint, question{}))
	// What is admitted is no denial, whatever the reason; of denials the log shows a sample, and the first one always.
	want := []denial{{pdftalk.id, r.closed, r.cause, "unavailable"}}
	if diff := cmp.Diff(want, s.denials()[len(denied):]); diff != "" {
		t.Errorf("denials in the log (-want +got):\n%s", diff)
	}
	st.lift()
	m.awaitHealthy(t)
	if moved := s.metrics(t).sum("ratelimit_breaker_transitions_total"); moved != 0 {
		t.Errorf("the breaker moved %v times, want never: it hides the row", moved)
	}
}

// testOpening lets the breaker open after its five failures. Every answer until then is one of the row's reason.
func (m *mesh) testOpening(t *testing.T, r row, st stage) {
	// The breaker stays open for long enough to be asked about it, and little longer.
	s := m.serve(t, append(st.flags, "--breaker-early-end-after", earlyEnd.String())...)
	m.awaitHealthy(t)
	st.hit()
	m.askUntilOpen(t, r)
	check(t, "fail_closed", unavailable(pdftalk, circuit, "breaker_open"), m.watch(t, pdftalk, question{}))
	check(t, "fail_open", admittedWithoutStore(resumint, circuit, "breaker_open"), m.watch(t, resumint, question{}))
	s.awaitLog(t, moved("closed", "open", "failures", line{"cause": r.cause}))
	st.lift()
	m.awaitHealthy(t)
	s.awaitLog(t, moved("open", "half_open", "proof", nil))
	s.awaitLog(t, moved("half_open", "closed", "success", nil))
}

// earlyEnd is the shortest quarantine of these tests.
const earlyEnd = time.Second

func (m *mesh) askUntilOpen(t *testing.T, r row) {
	t.Helper()
	open := `reason="` + circuit + `"`
	redistest.Eventually(t, "the breaker to open", func() bool {
		got := m.watch(t, pdftalk, question{})
		if got.Counted.sum(decisionsTotal, open) > 0 {
			return true
		}
		want := unavailable(pdftalk, r.closed, r.cause)
		want.Counted = got.Counted // other causes may come first: a connection is lost before a dial is refused
		if diff := cmp.Diff(want, got); diff != "" || got.Counted.sum(decisionsTotal, `reason="`+r.closed+`"`) != 1 {
			t.Errorf("before the breaker opened (-want +got), counted %v:\n%s", got.Counted, diff)
		}
		return false
	})
}
