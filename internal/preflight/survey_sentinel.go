package preflight

import (
	"context"
	"strings"
)

// askWatcher asks a Sentinel.
func (s *survey) askWatcher(ctx context.Context, address string) *watcher {
	w := &watcher{server: server{address: address}}
	g := s.visit(ctx, &w.server, true)
	if g == nil {
		return w
	}
	defer g.close()
	name := s.seeds.Master
	if reply, ok := g.askEither(ctx, partMaster, "sentinel", "master", name); ok {
		w.master = pairs(reply)
	}
	w.ignorant = strings.Contains(w.missing[partMaster], "No such master")
	if reply, ok := g.askEither(ctx, partReplicas, "sentinel", "replicas", name); ok {
		w.replicas = rows(reply)
	}
	if reply, ok := g.askEither(ctx, partSentinels, "sentinel", "sentinels", name); ok {
		w.others = rows(reply)
	}
	g.askQuorum(ctx, w)
	g.askFlush(ctx, w)
	if reply, ok := g.ask(ctx, partInfo, "info"); ok {
		w.info = lines(reply)
	}
	w.names = map[string]string{}
	for _, setting := range []string{"resolve-hostnames", "announce-hostnames"} {
		if reply, ok := g.ask(ctx, partNames, "sentinel", "config", "get", setting); ok {
			w.names[setting] = pairs(reply)[setting]
		}
	}
	user := s.cfg.Sentinels.Username
	if user == "" {
		user = "default"
	}
	g.askGrants(ctx, user, s.watcherWants())
	w.open = s.isOpen(ctx, address, true)
	w.err = lateError(g)
	return w
}

// askQuorum tells a Sentinel that finds no quorum from one that may not be asked.
func (g *guest) askQuorum(ctx context.Context, w *watcher) {
	reply, err := g.ours.ask(ctx, "sentinel", "ckquorum", g.s.seeds.Master)
	if refused := refusal(err); refused != nil && refused.forbidden() {
		reply, err = g.admin.ask(ctx, "sentinel", "ckquorum", g.s.seeds.Master)
	}
	refused := refusal(err)
	switch {
	case err == nil:
		w.quorum = text(reply)
	case refused == nil || refused.forbidden():
		w.missing[partQuorum] = reason(err)
	default:
		w.quorumErr = refused.reply
	}
}

func (g *guest) askFlush(ctx context.Context, w *watcher) {
	_, err := g.admin.ask(ctx, "sentinel", "flushconfig")
	refused := refusal(err)
	switch {
	case err == nil:
	case refused == nil || refused.forbidden():
		w.missing[partFlush] = reason(err)
	default:
		w.flushErr = refused.reply
	}
}
