package sentinel

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
)

// What a reply may hold at the most. Sentinel's longest describe a few dozen instances with some forty words each.
const (
	maxWords = 8192     // in one reply, and how deep they may be nested
	maxBulk  = 16 << 10 // bytes of one word
	maxLine  = 4 << 10  // bytes of a line
)

var (
	errProtocol = errors.New("a reply that is not Redis' protocol")
	errTooLong  = errors.New("a reply that is too long")
)

// refusal is an error reply.
type refusal string

func (r refusal) Error() string { return clean(string(r)) }

// is tells whether r begins with the code.
func (r refusal) is(code string) bool {
	return r == refusal(code) || strings.HasPrefix(string(r), code+" ")
}

// readReply reads one reply of bounded size.
func readReply(r *bufio.Reader) (any, error) {
	words := maxWords
	return readValue(r, &words)
}

func readValue(r *bufio.Reader, words *int) (any, error) {
	if *words--; *words < 0 {
		return nil, errTooLong
	}
	kind, line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	switch kind {
	case '+':
		return line, nil
	case '-':
		return refusal(line), nil
	case ':':
		return parseInt(line)
	case '$':
		return readBulk(r, line)
	case '*':
		return readArray(r, line, words)
	default:
		return nil, errProtocol
	}
}

func readLine(r *bufio.Reader) (kind byte, rest string, err error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return 0, "", errTooLong
	}
	if err != nil {
		return 0, "", err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return 0, "", errProtocol
	}
	return line[0], string(line[1 : len(line)-2]), nil
}

func parseInt(s string) (any, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return nil, errProtocol
	}
	return n, nil
}

func readBulk(r *bufio.Reader, length string) (any, error) {
	n, err := readLength(length, maxBulk)
	if n < 0 || err != nil {
		return nil, err
	}
	b := make([]byte, n+2)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	if string(b[n:]) != "\r\n" {
		return nil, errProtocol
	}
	return string(b[:n]), nil
}

func readArray(r *bufio.Reader, length string, words *int) (any, error) {
	n, err := readLength(length, *words)
	if n < 0 || err != nil {
		return nil, err
	}
	list := make([]any, 0, n)
	for range n {
		v, err := readValue(r, words)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// readLength is -1 for nothing at all.
func readLength(s string, most int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < -1 {
		return 0, errProtocol
	}
	if n > most {
		return 0, errTooLong
	}
	return n, nil
}
