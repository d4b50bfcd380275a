package journal

import (
	"slices"
	"time"
)

// SlotLength is the width of a Slot.
const SlotLength = 100 * time.Millisecond

// Slot is a tenth of a second of the run.
type Slot struct {
	// At is when it begins.
	At float64 `json:"at_seconds"`
	// Reasons counts the answers that came in it.
	Reasons map[string]int `json:"reasons"`
	// P99 and Worst are the latencies of those answers.
	P99   float64 `json:"p99_seconds"`
	Worst float64 `json:"worst_seconds"`
}

// slots covers the whole run, empty slots too; the last, which the end cuts short, is left out.
func (j *Journal) slots() []Slot {
	slots := make([]Slot, max(1, int(j.End/SlotLength)))
	latencies := make([][]time.Duration, len(slots))
	for i := range slots {
		slots[i] = Slot{At: (time.Duration(i) * SlotLength).Seconds(), Reasons: map[string]int{}}
	}
	for _, a := range j.Answers {
		i := int(a.At / SlotLength)
		if i >= len(slots) {
			continue
		}
		slots[i].Reasons[a.Reason]++
		latencies[i] = append(latencies[i], a.Latency())
	}
	for i, l := range latencies {
		slices.Sort(l)
		slots[i].P99, slots[i].Worst = quantile(l, 0.99).Seconds(), quantile(l, 1).Seconds()
	}
	return slots
}
