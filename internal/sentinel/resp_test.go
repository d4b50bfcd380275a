package sentinel

import (
	"bufio"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadReply_ReadsWhatIsWithinBounds(t *testing.T) {
	for text, want := range map[string]any{
		"+OK\r\n":                       "OK",
		"-ERR no\r\n":                   refusal("ERR no"),
		":-7\r\n":                       int64(-7),
		"$3\r\na\r\n\r\n":               "a\r\n",
		"$-1\r\n":                       nil,
		"*-1\r\n":                       nil,
		"*0\r\n":                        []any{},
		"*2\r\n*1\r\n:1\r\n$1\r\nb\r\n": []any{[]any{int64(1)}, "b"},
		"$" + "16384\r\n" + strings.Repeat("x", maxBulk) + "\r\n": strings.Repeat("x", maxBulk),
	} {
		got, err := readReply(bufio.NewReader(strings.NewReader(text)))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("readReply(%.20q): %v (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestReadReply_RefusesTheRest(t *testing.T) {
	for text, want := range map[string]error{
		strings.Repeat("*1\r\n", maxWords+1):               errTooLong,
		"*2\r\n*8190\r\n" + strings.Repeat(":1\r\n", 8192): errTooLong,
		"*8192\r\n":                          errTooLong,
		"$16385\r\n":                         errTooLong,
		"+" + strings.Repeat("x", maxLine):   errTooLong,
		"*-2\r\n":                            errProtocol,
		"$3\r\nabcde":                        errProtocol,
		":one\r\n":                           errProtocol,
		"%1\r\n":                             errProtocol,
		"\r\n":                               errProtocol,
		"+OK\n":                              errProtocol,
		"*1\r\n$99999999999999999999999\r\n": errProtocol,
	} {
		got, err := readReply(bufio.NewReaderSize(strings.NewReader(text), maxLine))
		if !errors.Is(err, want) {
			t.Errorf("readReply(%.20q) = %v, %v, want %v", text, got, err, want)
		}
	}
}
