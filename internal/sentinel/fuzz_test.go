package sentinel

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever a server sends, it is read without a crash, within bounds, and only addresses that can be dialed come out.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{
		"*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n",
		"*4\r\n$12\r\nconfig-epoch\r\n$1\r\n7\r\n$5\r\nflags\r\n$13\r\nmaster,s_down\r\n",
		"*1\r\n*6\r\n$2\r\nip\r\n$1\r\nh\r\n$4\r\nport\r\n$1\r\n1\r\n$5\r\nrunid\r\n$1\r\nx\r\n",
		"+OK 3 usable Sentinels\r\n", "-NOQUORUM 1 usable\r\n", ":12\r\n", "*-1\r\n", "$-1\r\n", "*9999999999\r\n",
		"-ERR No such master with that name\r\n", "$5\r\nab\xff\r\n\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		reply, err := readReply(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return
		}
		if address, err := parseAddress(reply); err == nil {
			checkAddress(t, address)
		}
		_, _ = parseMaster(reply)
		peers, _ := parsePeers(reply)
		for _, p := range peers {
			checkAddress(t, p.address)
			if p.id != "" && len(p.id) != 40 {
				t.Errorf("id = %q", p.id)
			}
		}
		replicas, _ := parseReplicas(reply)
		for _, r := range replicas {
			checkAddress(t, r.Address)
		}
		q, err := parseQuorum(reply)
		if err != nil {
			checkText(t, err.Error())
		}
		checkText(t, q.Text)
	})
}

func FuzzEvents(f *testing.F) {
	f.Add("+switch-master", "mymaster 10.0.0.1 6379 10.0.0.2 6379")
	f.Add("+sdown", "slave 10.0.0.2:6379 10.0.0.2 6379 @ mymaster 10.0.0.1 6379")
	f.Add("+vote-for-leader", "0123 7")
	f.Add("+new-epoch", "18446744073709551616")
	names := EventNames()
	f.Fuzz(func(t *testing.T, channel, payload string) {
		e, _ := parseEvent(channel, payload)
		known := false
		for _, n := range names {
			known = known || e.Name == n
		}
		if !known {
			t.Errorf("name = %q is outside the closed set", e.Name)
		}
		for _, address := range []string{e.Address, e.Master} {
			if address != "" {
				checkAddress(t, address)
			}
		}
	})
}

func checkAddress(t *testing.T, address string) {
	t.Helper()
	if !isAddress(address) {
		t.Errorf("address = %q", address)
	}
	checkText(t, address)
}

// checkText wants what fits in a log line.
func checkText(t *testing.T, text string) {
	t.Helper()
	if len(text) > 4*maxText || !utf8.ValidString(text) || strings.ContainsAny(text, "\r\n\x00\x1b") {
		t.Errorf("text = %q", text)
	}
}
