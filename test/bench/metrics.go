package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Metrics that runs ask for.
const (
	allocationsMetric = "go_memstats_mallocs_total"
	goroutinesMetric  = "go_goroutines"
	memoryMetric      = "process_resident_memory_bytes"
	dialsMetric       = "ratelimit_store_dials_total"
	rpcsMetric        = "ratelimit_rpcs_total"
)

// samples are the metrics of one scrape: name to sum over all label values.
type samples map[string]float64

// scrape reads the /metrics of an admin port.
func scrape(ctx context.Context, admin string) (samples, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics answers %s", resp.Status)
	}
	return parseMetrics(resp.Body)
}

// parseMetrics understands the text format as far as a sum needs it: comments, name, labels, value.
func parseMetrics(r io.Reader) (samples, error) {
	out := samples{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		name := line[:strings.IndexAny(line+" ", "{ ")]
		fields := strings.Fields(line[strings.LastIndexByte(line, '}')+1:])
		if line[len(name):] != "" && line[len(name)] == ' ' {
			fields = fields[1:]
		}
		if len(fields) == 0 {
			return nil, fmt.Errorf("metrics: %q is not understood", line)
		}
		v, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %q: %w", line, err)
		}
		out[name] += v
	}
	return out, lines.Err()
}

// infoOf reads the numbers of sections of Redis' INFO, all sections in one map.
func infoOf(ctx context.Context, addr string) (samples, error) {
	client := redisClient(addr)
	defer client.Close()
	text, err := client.Info(ctx, "everything").Result()
	if err != nil {
		return nil, err
	}
	return parseInfo(text), nil
}

func redisClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, DisableIdentity: true, MaxRetries: -1})
}

// parseInfo keeps the lines name:number, and of command statistics, name:calls=N,..., the calls.
func parseInfo(text string) samples {
	out := samples{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		value = strings.TrimPrefix(value, "calls=")
		value, _, _ = strings.Cut(value, ",")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			out[name] = v
		}
	}
	return out
}

// memoryUsage is what Redis says one of its keys takes, key and value and their objects, and the key's length.
func memoryUsage(ctx context.Context, addr string) (usage, length float64, err error) {
	client := redisClient(addr)
	defer client.Close()
	key, err := client.RandomKey(ctx).Result()
	if err != nil {
		return 0, 0, err
	}
	n, err := client.MemoryUsage(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return 0, 0, errors.New("the sampled key expired")
	}
	return float64(n), float64(len(key)), err
}
