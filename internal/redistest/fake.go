package redistest

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Answer is what a Fake says to one command: raw bytes of the protocol, "" to say nothing. args are the words of the
// command, the first one in lower case.
type Answer func(args []string) string

// HangUp makes a Fake close the connection instead of answering.
const HangUp = "\x00hang up"

// Fake is a server that answers whatever a test wants, for the states that are hard to bring a real Redis into.
type Fake struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	answer Answer
	conns  map[net.Conn]struct{}
	dials  int
}

// NewFake starts a fake on a free loopback port. Cleanup stops it.
func NewFake(t testing.TB, answer Answer) *Fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &Fake{listener: l, answer: answer, conns: map[net.Conn]struct{}{}}
	f.serving.Go(f.accept)
	t.Cleanup(f.stop)
	return f
}

// Healthy answers what a master says to a client that connects, and asks decide about everything else.
func Healthy(decide Answer) Answer {
	return func(args []string) string {
		switch args[0] {
		case "hello":
			return "*2\r\n$5\r\nproto\r\n:2\r\n"
		case "auth", "select":
			return "+OK\r\n"
		case "ping":
			return "+PONG\r\n"
		case "role":
			return "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
		case "script":
			return "$40\r\n" + strings.Repeat("0", 40) + "\r\n"
		case "evalsha":
			if args[2] == "0" {
				return "$0\r\n\r\n"
			}
		}
		return decide(args)
	}
}

// Decided is the script's reply about one bucket, as decide.lua documents it, at the beginning of time.
func Decided(code byte, remaining, retryAfter, resetAfter int64) string {
	reply := append(make([]byte, 7), code)
	for _, n := range []int64{remaining, retryAfter + 1, resetAfter} {
		reply = append(reply, binary.BigEndian.AppendUint64(nil, uint64(n))[1:]...)
	}
	return fmt.Sprintf("$%d\r\n%s\r\n", len(reply), reply)
}

// Addr is host:port.
func (f *Fake) Addr() string { return f.listener.Addr().String() }

// URL is the address as the service takes it.
func (f *Fake) URL() string { return "redis://" + f.Addr() }

// Say changes what the fake answers from now on.
func (f *Fake) Say(answer Answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// Dials is the number of connections that were ever opened.
func (f *Fake) Dials() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dials
}

func (f *Fake) stop() {
	_ = f.listener.Close()
	f.mu.Lock()
	f.closed = true
	for c := range f.conns {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.serving.Wait()
}

func (f *Fake) accept() {
	for {
		c, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		closed := f.closed
		f.conns[c] = struct{}{}
		f.dials++
		f.mu.Unlock()
		if closed {
			_ = c.Close()
			return
		}
		f.serving.Go(func() { f.serve(c) })
	}
}

func (f *Fake) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		f.mu.Lock()
		delete(f.conns, c)
		f.mu.Unlock()
	}()
	r := bufio.NewReader(c)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		f.mu.Lock()
		answer := f.answer
		f.mu.Unlock()
		reply := answer(args)
		if reply == HangUp {
			return
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}

func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readLength(r)
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := readLength(r)
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(r, word); err != nil {
			return nil, err
		}
		args[i] = string(word[:size])
	}
	if n > 0 {
		args[0] = strings.ToLower(args[0])
	}
	return args, nil
}

// readLength reads the number of a "*3" or "$5" line.
func readLength(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 2 {
		return 0, io.ErrUnexpectedEOF
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
