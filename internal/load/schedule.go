package load

import (
	"math"
	"time"
)

// schedule is when the requests of an open loop are due. Each moment follows from the number of the request alone, so
// neither rounding nor a late start of one shifts those that follow.
type schedule struct {
	perSecond float64
	ramp      time.Duration
}

// at is when request n is due, since the start. The rate rises linearly over the ramp, so n(t) = rate t^2 / 2 ramp
// there, and half of what the full rate would have sent has arrived when it ends.
func (s schedule) at(n int64) time.Duration {
	ramp := s.ramp.Seconds()
	inRamp := s.perSecond * ramp / 2
	seconds := float64(n)/s.perSecond + ramp/2
	if float64(n) < inRamp {
		seconds = math.Sqrt(2 * ramp * float64(n) / s.perSecond)
	}
	return time.Duration(math.Round(seconds * float64(time.Second)))
}
