-- Decides all buckets of one request, or none. KEYS: the buckets, distinct. ARGV: algorithm, capacity, refill, period
-- and cost for each (see limit.Limit). Reply: allowed, remaining, retry after, reset after for each; times in
-- microseconds, retry after -1 for never. Redis TIME is the only clock. A request that is denied, and a cost of 0,
-- writes nothing, not even a lifetime.

-- One byte algorithm, three integers of seven bytes, big endian.
local LAYOUT, SIZE = '>BI7I7I7', 22

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local buckets, admitted = {}, true
for i = 1, #KEYS do
  local a = (i - 1) * 5
  local b = {
    algorithm = tonumber(ARGV[a + 1]), capacity = tonumber(ARGV[a + 2]), refill = tonumber(ARGV[a + 3]),
    period = tonumber(ARGV[a + 4]), cost = tonumber(ARGV[a + 5]),
  }
  local at, level, rest = 0, 0, 0
  local raw = redis.call('GET', KEYS[i])
  -- State of another algorithm is of no use: such a bucket starts anew.
  if raw and #raw == SIZE and raw:byte(1) == b.algorithm then
    local _
    _, at, level, rest = struct.unpack(LAYOUT, raw)
  end
  b.at, b.level, b.rest = advance(b.algorithm, b.capacity, b.refill, b.period, at, level, rest, now)
  b.wait = wait_for(b.algorithm, b.capacity, b.refill, b.period, b.at, b.level, b.rest, now, b.cost)
  admitted = admitted and b.wait == 0
  buckets[i] = b
end

local reply = {}
for i = 1, #KEYS do
  local b = buckets[i]
  local charge = admitted and b.cost > 0
  if charge then b.level = spend(b.algorithm, b.level, b.cost) end
  local full_in = reset(b.algorithm, b.capacity, b.refill, b.period, b.at, b.level, b.rest, now)
  if charge then
    local state = struct.pack(LAYOUT, b.algorithm, b.at, b.level, b.rest)
    redis.call('SET', KEYS[i], state, 'PX', string.format('%.0f', math.ceil(full_in / 1000)))
  end
  local r = (i - 1) * 4
  reply[r + 1] = b.wait == 0 and 1 or 0
  reply[r + 2] = remaining(b.algorithm, b.capacity, b.period, b.at, b.level, b.rest, now)
  reply[r + 3] = min(b.wait, FOREVER)
  reply[r + 4] = full_in
end
return reply
