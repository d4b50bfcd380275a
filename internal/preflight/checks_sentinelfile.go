package preflight

import (
	"net"
	"slices"
	"strings"
)

// sentinelFileChecks are about what a Sentinel has in its configuration file besides the master.
func sentinelFileChecks() []Check {
	return []Check{
		{
			ID: "sentinel-config", Setups: sentinels, judge: judgeSentinelConfig,
			Looks: "SENTINEL FLUSHCONFIG, and where the configuration file is",
			Warns: "the file is in a directory that does not survive a restart (/tmp, /run, /dev/shm)",
			Fails: "Sentinel cannot write its configuration: it forgets its votes and who leads when it restarts",
			Remedy: "a writable, persistent directory, and not only a writable file: a volume, and not a ConfigMap; copy the " +
				"template there at the first start only",
		},
		{
			ID: "names", Setups: sentinels, judge: judgeNames,
			Looks: "resolve-hostnames and announce-hostnames against the addresses that are announced, and against TLS",
			Warns: "resolve-hostnames without announce-hostnames (clients are told addresses, which may change, and which " +
				"certificates may not name), or Sentinels differ",
			Fails:  "a name is announced and resolve-hostnames is off, or a Sentinel on another machine announces 127.0.0.1",
			Remedy: "sentinel resolve-hostnames yes and announce-hostnames yes at every Sentinel, or addresses everywhere",
		},
	}
}

func judgeSentinelConfig(f *facts, v *verdict) {
	for _, w := range f.awake() {
		if !v.knows(&w.server, partFlush) {
			continue
		}
		file := w.info["config_file"]
		switch {
		case w.flushErr != "":
			v.fail(w.address, "%s", w.flushErr)
		case slices.ContainsFunc(passing, func(dir string) bool { return strings.HasPrefix(file, dir) }):
			v.warn(w.address, "writes its configuration to a directory that a restart empties: %s", passingDir(file))
		default:
			v.pass("written")
		}
	}
}

// passing are directories that usually do not outlive a restart.
var passing = []string{"/tmp/", "/run/", "/var/run/", "/dev/shm/"}

func passingDir(file string) string {
	i := slices.IndexFunc(passing, func(dir string) bool { return strings.HasPrefix(file, dir) })
	return passing[i]
}

func judgeNames(f *facts, v *verdict) {
	asked := f.awake()
	for _, name := range []string{"resolve-hostnames", "announce-hostnames"} {
		if values := tally(asked, func(w *watcher) string { return w.names[name] }); len(values) > 1 {
			v.warn("", "%s differs: %s", name, strings.Join(values, ", "))
		}
	}
	for _, w := range asked {
		for _, own := range w.ownAddresses() {
			r := v.fail(w.address, "is on another machine and announces %s, which is every machine's own", own)
			r.Remedy = "monitor the master by an address that other machines reach, and set replica-announce-ip"
		}
		if !v.knows(&w.server, partNames) || !v.knows(&w.server, partMaster) {
			continue
		}
		named := net.ParseIP(w.master["ip"]) == nil
		resolves, announces := w.names["resolve-hostnames"] == "yes", w.names["announce-hostnames"] == "yes"
		switch {
		case named && !resolves:
			v.fail(w.address, "announces the name %s, and does not resolve names itself", w.master["ip"])
		case resolves && !announces:
			v.warn(w.address, "resolves names, and announces addresses")
		case named:
			v.pass("names are resolved and announced")
		default:
			v.pass("addresses everywhere")
		}
	}
}

// ownAddresses are the loopback addresses that a Sentinel elsewhere announces for data nodes.
func (w *watcher) ownAddresses() []string {
	if w.host == loopback {
		return nil
	}
	var all []string
	for _, r := range append([]map[string]string{w.master}, w.replicas...) {
		if ip := net.ParseIP(r["ip"]); r["ip"] == "localhost" || ip != nil && ip.IsLoopback() {
			all = append(all, endpoint(r))
		}
	}
	return all
}
