package drill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/load"
	"github.com/honestlimit/ratelimit/internal/redisstore"
)

// AttachConfig says whom to look at. Master and Addresses are required.
type AttachConfig struct {
	// Master is the name by which the Sentinels know the master, Addresses are host:port of those to listen to.
	Master    string
	Addresses []string
	// Data and Sentinels are how the servers let us in; NAT maps announced addresses to those that reach them.
	Data, Sentinels redisstore.Access
	NAT             map[string]string

	// Service is the gRPC address to offer load to, of requests with Domain and Descriptors; empty offers none.
	Service     string
	Domain      string
	Descriptors [][]load.Entry
	// Admin is the service's admin address; empty if it is not to be looked at.
	Admin string
	// Rate is the number of requests offered each second; the default is 500.
	Rate float64
	// Budget and Margin are as those of Config.
	Budget, Margin time.Duration

	// Inject breaks something of the caller's own after Before, whose default is 3 s. Default: nothing is broken.
	Inject func(context.Context) error
	Before time.Duration
	// Duration is how long to look; the default is until the context ends, which is no error.
	Duration time.Duration
	// OnProgress is as that of Config.
	OnProgress func(string)
}

// clientTimeout bounds every step with a server that is looked at.
const clientTimeout = 500 * time.Millisecond

// failover finds the command that orders a failover.
var failover = regexp.MustCompile(`(?i)\b(sentinel|cluster)['"]?\s+['"]?failover\b`)

// SkipsDetection is whether a fault only orders a failover: that skips what a drill is for.
func SkipsDetection(command string) bool { return failover.MatchString(command) }

// Attach looks at somebody's own deployment until Duration has passed or ctx ends, and says what it saw. It starts
// nothing and, without Inject, breaks nothing. Checks are those that hold in any deployment.
func Attach(ctx context.Context, cfg AttachConfig) (*journal.Report, error) {
	cfg = cfg.withDefaults()
	redisstore.Silence()
	a, err := openAttachment(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer a.close()
	// The load must outlast Ctrl-C, else its last requests would look like failures of the service.
	steady := context.WithoutCancel(ctx)
	if cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Duration)
		defer cancel()
	}
	return a.run(ctx, steady)
}

func (c AttachConfig) withDefaults() AttachConfig {
	c.Rate = cmp.Or(c.Rate, 500)
	c.Budget = cmp.Or(c.Budget, 20*time.Millisecond)
	c.Margin = cmp.Or(c.Margin, 50*time.Millisecond)
	c.Before = cmp.Or(c.Before, 3*time.Second)
	if c.OnProgress == nil {
		c.OnProgress = func(string) {}
	}
	return c
}

// attachment is somebody's deployment, looked at.
type attachment struct {
	cfg       AttachConfig
	sentinels []observed
	data      []observed
	master    string
	rec       *recorder
}

// openAttachment asks the first Sentinel that answers for the data nodes.
func openAttachment(ctx context.Context, cfg AttachConfig) (*attachment, error) {
	a := &attachment{cfg: cfg}
	for _, address := range cfg.Addresses {
		o, err := a.observe(address, cfg.Sentinels)
		if err != nil {
			return nil, errors.Join(err, a.close())
		}
		a.sentinels = append(a.sentinels, o)
	}
	var errs []error
	for _, s := range a.sentinels {
		err := a.discover(ctx, s)
		if err == nil {
			return a, nil
		}
		errs = append(errs, fmt.Errorf("drill: %s: %w", s.name, err))
	}
	return nil, errors.Join(append(errs, a.close())...)
}

// observe makes a client for an announced address.
func (a *attachment) observe(address string, access redisstore.Access) (observed, error) {
	target, err := access.Target(cmp.Or(a.cfg.NAT[address], address))
	if err != nil {
		return observed{}, err
	}
	client := redisstore.NewClient(target, clientTimeout)
	return observed{name: address, address: address, client: client}, nil
}

// discover asks a Sentinel who the master and the replicas are.
func (a *attachment) discover(ctx context.Context, s observed) error {
	words, err := s.client.Do(ctx, "sentinel", "get-master-addr-by-name", a.cfg.Master).StringSlice()
	if err != nil || len(words) != 2 {
		return cmp.Or(err, errors.New("it does not know that master"))
	}
	a.master = net.JoinHostPort(words[0], words[1])
	addresses := []string{a.master}
	replicas, err := s.client.Do(ctx, "sentinel", "replicas", a.cfg.Master).Slice()
	if err != nil {
		return err
	}
	for _, r := range replicas {
		fields := pairs(r)
		addresses = append(addresses, net.JoinHostPort(fields["ip"], fields["port"]))
	}
	for _, address := range addresses {
		o, err := a.observe(address, a.cfg.Data)
		if err != nil {
			return err
		}
		a.data = append(a.data, o)
	}
	return nil
}

// pairs reads the flat list of names and values that Sentinels answer with.
func pairs(reply any) map[string]string {
	list, _ := reply.([]any)
	fields := map[string]string{}
	for i := 0; i+1 < len(list); i += 2 {
		fields[fmt.Sprint(list[i])] = fmt.Sprint(list[i+1])
	}
	return fields
}

func (a *attachment) close() error {
	var errs []error
	for _, o := range append(a.sentinels, a.data...) {
		errs = append(errs, o.client.Close())
	}
	return errors.Join(errs...)
}

// run looks until ctx ends.
func (a *attachment) run(ctx, steady context.Context) (*journal.Report, error) {
	offer := a.offer()
	a.rec = newRecorder(a.plan(), offer.streams)
	w := newWatcher(a.rec)
	watching, cancel := context.WithCancel(steady)
	w.cancel = cancel
	defer w.stop()
	w.stalls(watching)
	w.rounds(watching, a.data)
	w.events(watching, a.sentinels)
	w.votes(watching, a.cfg.Master, a.sentinels)
	if a.cfg.Admin != "" {
		w.service(watching, &service{admin: a.cfg.Admin, client: &http.Client{Timeout: time.Second}})
	}
	stop, loaded := make(chan struct{}), make(chan error, 1)
	go func() { loaded <- offer.run(steady, a.rec, stop) }()
	a.cfg.OnProgress("looking at " + a.cfg.Master + ", now at " + a.master)
	err := a.inject(ctx)
	select {
	case <-ctx.Done():
	case loadErr := <-loaded: // with a load, it ends early only if it cannot begin
		if len(offer.streams) > 0 {
			close(stop)
			return nil, errors.Join(err, loadErr)
		}
		<-ctx.Done()
		loaded <- nil
	}
	close(stop)
	err = errors.Join(err, <-loaded)
	j := a.rec.finish()
	j.End = a.rec.now()
	return journal.Analyse(j), err
}

// inject breaks what the caller wants broken.
func (a *attachment) inject(ctx context.Context) error {
	if a.cfg.Inject == nil {
		return nil
	}
	pause(ctx, a.cfg.Before)
	if ctx.Err() != nil {
		return errors.New("drill: it ended before the fault was to be injected")
	}
	a.cfg.OnProgress("injecting the fault")
	a.rec.act(journal.Injected, "the fault that was named")
	err := a.cfg.Inject(ctx)
	a.cfg.OnProgress("the fault's command has ended")
	return err
}

// offer is the load that was asked for; without a service it has no streams.
func (a *attachment) offer() *offer {
	o := &offer{target: a.cfg.Service, domain: a.cfg.Domain}
	if a.cfg.Service == "" {
		return o
	}
	o.streams = []journal.Stream{{Name: "the descriptor that was named", PerSecond: a.cfg.Rate, Steady: true}}
	o.descriptors, o.keys = [][][]load.Entry{a.cfg.Descriptors}, []int{1}
	return o
}

func (a *attachment) plan() journal.Plan {
	return journal.Plan{
		Category: journal.Attached, Title: "Somebody's own deployment, looked at.",
		Topology: fmt.Sprintf("%d data nodes and %d Sentinels", len(a.data), len(a.sentinels)), Master: a.master,
		Budget: a.cfg.Budget, Margin: a.cfg.Margin,
	}
}
