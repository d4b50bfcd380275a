package load

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"
)

// tick is the unit of times in /proc/PID/stat: USER_HZ is 100 on every Linux architecture that Go runs on.
const tick = 10 * time.Millisecond

// CPU is the processor time that a process used between the end of the warm-up and the last request.
type CPU struct {
	PID int `json:"pid"`
	// Name is the name of the program.
	Name string `json:"name"`
	// Gone is true if the process ended before the run did; the times are 0 then.
	Gone bool `json:"gone"`
	// Seconds is user and system time of all threads, in steps of 0.01 s.
	Seconds float64 `json:"cpu_seconds"`
	// Cores is Seconds for each second of the run.
	Cores float64 `json:"cpu_cores"`
	// MicrosecondsPerRequest is Seconds divided by the reported requests, in microseconds.
	MicrosecondsPerRequest float64 `json:"cpu_microseconds_per_request"`
}

// meter measures processes, the own one last if this system can tell.
type meter struct {
	processes []process
	err       error
	from, to  time.Time
}

type process struct {
	pid        int
	name       string
	begin, end time.Duration
	gone       bool
}

// newMeter checks that the processes exist.
func newMeter(pids []int) (*meter, error) {
	m := &meter{}
	var faults []error
	for _, pid := range pids {
		name, _, err := readStat(pid)
		if err != nil {
			faults = append(faults, &FieldError{Field: "PIDs", Problem: fmt.Sprintf("process %d: %v", pid, err)})
		}
		m.processes = append(m.processes, process{pid: pid, name: name})
	}
	if name, _, err := readStat(os.Getpid()); err == nil {
		m.processes = append(m.processes, process{pid: os.Getpid(), name: name})
	}
	return m, errors.Join(faults...)
}

// begin notes the times at the start.
func (m *meter) begin() {
	m.from = time.Now()
	for i := range m.processes {
		p := &m.processes[i]
		p.begin = m.read(p)
	}
}

// finish notes the times at the end, once, and returns what went wrong.
func (m *meter) finish() error {
	if !m.to.IsZero() || m.from.IsZero() {
		return m.err
	}
	m.to = time.Now()
	for i := range m.processes {
		p := &m.processes[i]
		p.end = m.read(p)
	}
	return m.err
}

// read is the time that p used so far. That a process is gone is no error: it may be the fault.
func (m *meter) read(p *process) time.Duration {
	name, used, err := readStat(p.pid)
	if errors.Is(err, fs.ErrNotExist) || err == nil && name != p.name {
		p.gone = true
		return 0
	}
	m.err = errors.Join(m.err, err)
	return used
}

// list is what each process used, for that many requests.
func (m *meter) list(requests int64) []CPU {
	list := []CPU{}
	seconds := m.to.Sub(m.from).Seconds()
	for _, p := range m.processes {
		c := CPU{PID: p.pid, Name: p.name, Gone: p.gone}
		if !p.gone && seconds > 0 {
			c.Seconds = (p.end - p.begin).Seconds()
			c.Cores = c.Seconds / seconds
			c.MicrosecondsPerRequest = ratio(c.Seconds*1e6, float64(requests))
		}
		list = append(list, c)
	}
	return list
}

// readStat reads the program's name and the processor time of a process (proc(5), fields 2, 14 and 15).
func readStat(pid int) (name string, used time.Duration, err error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", 0, err
	}
	return parseStat(stat)
}

func parseStat(stat []byte) (name string, used time.Duration, err error) {
	malformed := fmt.Errorf("load: /proc stat is not understood: %q", stat)
	start, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')') // a name may hold parentheses
	if start < 0 || end < start {
		return "", 0, malformed
	}
	const user, system = 11, 12 // fields 14 and 15, counted from the one after the name
	fields := bytes.Fields(stat[end+1:])
	if len(fields) <= system {
		return "", 0, malformed
	}
	for _, f := range fields[user : system+1] {
		ticks, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return "", 0, malformed
		}
		used += time.Duration(ticks) * tick
	}
	return string(stat[start+1 : end]), used, nil
}

// ratio is a/b, and 0 if there is no b.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
