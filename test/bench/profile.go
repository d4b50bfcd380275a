package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/honestlimit/ratelimit/internal/load"
	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/test/sheet"
)

const (
	// profileFile is where the go command looks for a profile by itself.
	profileFile = "cmd/ratelimit/default.pgo"
	// profilePays is the part of the CPU that a profile must save to be kept.
	profilePays = 0.03
	// profileFor is how long each store is recorded under load.
	profileFor = 20 * time.Second
)

// profileFigures compare a build with the profile to one without it.
type profileFigures struct {
	// Plain and Guided are by store.
	Plain, Guided map[string]measured
	Kept          bool
}

// profile records where the CPU goes under load, builds with that, measures whether it pays, and keeps it if so.
func (b *bench) profile(ctx context.Context) error {
	recorded, err := b.record(ctx)
	if err != nil {
		return err
	}
	plain, guided := filepath.Join(b.lab.dir, "plain"), filepath.Join(b.lab.dir, "guided")
	for path, pgo := range map[string]string{plain: "off", guided: recorded} {
		args := []string{"build", "-trimpath", "-ldflags", "-s -w", "-pgo=" + pgo, "-o", path, "./cmd/ratelimit"}
		if err := b.gocommand(ctx, args...); err != nil {
			return err
		}
	}
	f := &profileFigures{Plain: map[string]measured{}, Guided: map[string]measured{}}
	for round := range 2 * b.opts.rounds { // a few per cent are to be told from noise
		b.lab.sayf("profile: comparing, round %d of %d", round+1, 2*b.opts.rounds)
		if err := b.compareBuilds(ctx, round, plain, guided, f); err != nil {
			return err
		}
	}
	f.Kept = f.saved().Median >= profilePays
	b.results.Profile = f
	b.lab.sayf("profile: saves %s %% of the CPU", f.saved().show(percent))
	return b.keep(recorded, f.Kept)
}

// record loads a test binary of the service, which writes the profile: the product itself has no way to.
func (b *bench) record(ctx context.Context) (string, error) {
	binary := filepath.Join(b.lab.dir, "ratelimit.test")
	if err := b.gocommand(ctx, "test", "-c", "-tags", "profile", "-o", binary, "./cmd/ratelimit"); err != nil {
		return "", err
	}
	args := []string{"tool", "pprof", "-proto", "-output", filepath.Join(b.lab.dir, "profile.pgo")}
	for i, k := range []kind{redisKind, embeddedKind} {
		b.lab.sayf("profile: recording %s", k.name)
		part := filepath.Join(b.lab.dir, fmt.Sprintf("part%d", i))
		recording := *b.lab
		recording.opts.binary = binary
		recording.prefix = []string{"-test.run", "^TestProfile$", "-test.timeout", "0", "-test.cpuprofile", part}
		s, err := recording.start(ctx, k)
		if err != nil {
			return "", err
		}
		_, err = b.lab.run(ctx, s, many(), profileFor)
		// The profile is written at the end of an orderly stop.
		if err = errors.Join(err, s.server.Stop(), s.stop()); err != nil {
			return "", err
		}
		args = append(args, part)
	}
	return args[4], b.gocommand(ctx, args...)
}

// compareBuilds runs both builds on each store, one right after the other, and another one first each round.
func (b *bench) compareBuilds(ctx context.Context, round int, plain, guided string, f *profileFigures) error {
	for _, k := range []kind{embeddedKind, redisKind} {
		for i := range 2 {
			binary, into := plain, f.Plain
			if (i+round)%2 == 1 {
				binary, into = guided, f.Guided
			}
			report, err := b.runBuild(ctx, binary, k)
			if err != nil {
				return err
			}
			into[k.name] = append(into[k.name], report)
		}
	}
	return nil
}

func (b *bench) runBuild(ctx context.Context, binary string, k kind) (_ load.Report, err error) {
	l := *b.lab
	l.opts.binary = binary
	s, err := l.start(ctx, k)
	if err != nil {
		return load.Report{}, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	return l.run(ctx, s, many(), b.opts.duration)
}

// saved is the part of the service's CPU that the profile saves, over both stores.
func (f *profileFigures) saved() spread {
	var all []float64
	for _, name := range sortedKeys(f.Plain) {
		for _, ratio := range ratios(f.Guided[name].figures(serviceCPU), f.Plain[name].figures(serviceCPU)) {
			all = append(all, 1-ratio)
		}
	}
	return spreadOf(all)
}

// keep puts the profile where the go command finds it, or makes sure that there is none.
func (b *bench) keep(recorded string, pays bool) error {
	path := filepath.Join(b.root, profileFile)
	if !pays {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := os.ReadFile(recorded)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// gocommand runs the go command in the checkout.
func (b *bench) gocommand(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", args[0], err, out)
	}
	return nil
}

func percent(part float64) string { return digits(100*part, 2) }

func (r *results) profileText() string {
	f := r.Profile
	if f == nil {
		return "Not measured yet: `make pgo`.\n"
	}
	t := sheet.NewTable("", "CPU in the service without", "with the profile", "saved, round by round")
	for _, name := range sortedKeys(f.Plain) {
		saved := ratios(f.Guided[name].figures(serviceCPU), f.Plain[name].figures(serviceCPU))
		for i := range saved {
			saved[i] = 1 - saved[i]
		}
		t.Row(name, over(f.Plain[name], serviceCPU).show(micros)+" µs", over(f.Guided[name], serviceCPU).show(micros)+" µs",
			spreadOf(saved).show(percent)+" %")
	}
	end := fmt.Sprintf("It does not save the %s %% that would make it worth keeping: there is none.", percent(profilePays))
	if f.Kept {
		end = "It is kept as `" + profileFile + "`, where the go command finds it."
	}
	return t.String() + "\nTwice as many rounds as stated above. " + end + "\n"
}

// startProgram starts the service, or a test binary of it.
func (l *lab) startProgram(env, args []string) (*process.Process, error) {
	return process.Start(process.Config{
		Name: "ratelimit", Path: l.opts.binary, Args: append(append([]string{}, l.prefix...), args...), Env: env,
	})
}
