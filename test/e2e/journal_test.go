package e2e_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"sync"
)

// journal keeps everything that a process prints. It is safe for concurrent use.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// tail is the last n lines.
func (j *journal) tail(n int) string {
	lines := strings.Split(strings.TrimRight(j.text(), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// line is one structured line of a log.
type line map[string]any

// lines are the structured lines so far; those that are no JSON object are left out.
func (j *journal) lines() []line {
	var list []line
	for text := range strings.Lines(j.text()) {
		var l line
		if json.Unmarshal([]byte(text), &l) == nil {
			list = append(list, l)
		}
	}
	return list
}

// find returns the first line that has all fields of want with these values.
func (j *journal) find(want line) (line, bool) {
	for _, l := range j.lines() {
		if l.has(want) {
			return l, true
		}
	}
	return nil, false
}

func (l line) has(want line) bool {
	for field, value := range want {
		if l[field] != value {
			return false
		}
	}
	return true
}

// moved is the line of the log that tells of a move of the breaker, with further fields.
func moved(from, to, trigger string, further line) line {
	l := line{"message": "breaker moved", "from": from, "to": to, "trigger": trigger}
	maps.Copy(l, further)
	return l
}

// denial is a line of the log that tells of a denied request.
type denial struct{ Endpoint, Reason, Cause, Answer string }

// denials are the denials that the log tells of so far, in order.
func (s *service) denials() []denial {
	list := []denial{}
	for _, l := range s.log.lines() {
		if l["message"] != "request denied" {
			continue
		}
		list = append(list, denial{l.text("endpoint_id"), l.text("reason"), l.text("cause"), l.text("answer")})
	}
	return list
}

// text is the value of a field, "" if it is none of text.
func (l line) text(field string) string {
	s, _ := l[field].(string)
	return s
}
