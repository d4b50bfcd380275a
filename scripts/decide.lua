-- Decides a batch of requests, one after the other, each of them all or nothing. Redis TIME is the only clock, and is
-- one moment for the whole batch. A request that is denied, and a cost of 0, writes nothing, not even a lifetime; a
-- bucket that several requests charge is read once and written once.
--
-- A request of a Cluster whose buckets live in several slots is decided slot by slot. If one slot denies, what the others
-- admitted is taken back by a refund, whose buckets always admit; if that is known before, the others are only asked.
--
-- KEYS: the buckets of all requests, in order. ARGV[1]: for each request the number of its buckets (one byte), then
-- algorithm, capacity, refill, period and cost for each (see limit.Limit); the algorithm has the flag REFUND if the cost
-- is given back, and when it was charged follows then, or ASK if the cost is not charged. Reply: the time, then for
-- each bucket a code, remaining, retry after + 1 (so that never is 0) and reset after; times in microseconds. wire.go is
-- the other end of both.

local CHARGE, TIME, RESULT = '>BI7I7I7I7', '>I7', '>BI7I7I7'
local REFUND, ASK = 128, 64
local DENIED, ADMITTED, UNREADABLE = 0, 1, 2

-- State in Redis: a byte with the algorithm, then at, level and rest. Small numbers are the rule and take 15 bytes; where
-- they do not fit, the byte has the flag WIDE and they take 22.
local SMALL, WIDE, FLAG = '>BI7I5I2', '>BI7I7I7', 128
local SMALL_SIZE, WIDE_SIZE, SMALL_LEVEL, SMALL_REST = 15, 22, 2 ^ 40, 2 ^ 16

local pack, unpack, ceil = struct.pack, struct.unpack, math.ceil
local call, pcall = redis.call, redis.pcall
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local states = {} -- what is known of each bucket: at, level, rest, algorithm, lifetime if it must be written

local function state_of(key)
  local s = states[key]
  if s then return s end
  s = {0, 0, 0, 0}
  local raw = pcall('GET', key)
  if type(raw) == 'table' then
    -- A key of another type is the trouble of its own requests; every other error is everybody's.
    if raw.err and raw.err:sub(1, 9) ~= 'WRONGTYPE' then return nil, raw end
    s.unreadable = true
  elseif raw and #raw == SMALL_SIZE then
    s[4], s[1], s[2], s[3] = unpack(SMALL, raw)
  elseif raw and #raw == WIDE_SIZE then
    s[4], s[1], s[2], s[3] = unpack(WIDE, raw)
    s[4] = s[4] - FLAG
  end
  states[key] = s
  return s
end

local packed, position, bucket = ARGV[1] or '', 1, 0
local reply, buckets = {pack(TIME, now)}, {}

while position <= #packed do
  local count = packed:byte(position)
  position = position + 1
  local admitted, readable = true, true
  for i = 1, count do
    local b = buckets[i]
    if not b then b = {}; buckets[i] = b end
    local algorithm, capacity, refill, period, cost, next_position = unpack(CHARGE, packed, position)
    position, bucket = next_position, bucket + 1
    local flag = 0
    if algorithm >= ASK then
      flag = algorithm >= REFUND and REFUND or ASK
      algorithm = algorithm - flag
      if flag == REFUND then b.charged_at, position = unpack(TIME, packed, position) end
    end
    local s, trouble = state_of(KEYS[bucket])
    if not s then return trouble end
    local at, level, rest = 0, 0, 0
    -- State of another algorithm is of no use: such a bucket starts anew.
    if s[4] == algorithm then at, level, rest = s[1], s[2], s[3] end
    local spent = cost -- negative: given back, unless nothing is left of what was charged
    if flag ~= 0 then spent = flag == REFUND and at ~= 0 and -cost or 0 end
    at, level, rest = advance(algorithm, capacity, refill, period, at, level, rest, now)
    local wait = 0
    if flag ~= REFUND then
      wait = wait_for(algorithm, capacity, refill, period, at, level, rest, now, cost)
    end
    b.state, b.algorithm, b.capacity, b.refill, b.period, b.spent = s, algorithm, capacity, refill, period, spent
    b.at, b.level, b.rest, b.wait = at, level, rest, wait
    admitted, readable = admitted and wait == 0, readable and not s.unreadable
  end
  for i = 1, count do
    local b = buckets[i]
    local charge = admitted and readable and b.spent ~= 0
    if charge then
      if b.spent > 0 then
        b.level = spend(b.algorithm, b.level, b.spent)
      else
        b.level, b.rest = refund(b.algorithm, b.capacity, b.refill, b.period, b.at, b.level, b.rest, now, -b.spent,
          b.charged_at)
      end
    end
    local full_in = reset(b.algorithm, b.capacity, b.refill, b.period, b.at, b.level, b.rest, now)
    if charge then
      local s = b.state
      s[1], s[2], s[3], s[4], s.lifetime = b.at, b.level, b.rest, b.algorithm, ceil(full_in / 1000)
    end
    local code = not readable and UNREADABLE or b.wait == 0 and ADMITTED or DENIED
    reply[#reply + 1] = pack(RESULT, code,
      remaining(b.algorithm, b.capacity, b.period, b.at, b.level, b.rest, now), min(b.wait, FOREVER) + 1, full_in)
  end
end

for key, s in pairs(states) do
  if s.lifetime then
    local state
    if s[2] < SMALL_LEVEL and s[3] < SMALL_REST then
      state = pack(SMALL, s[4], s[1], s[2], s[3])
    else
      state = pack(WIDE, s[4] + FLAG, s[1], s[2], s[3])
    end
    call('SET', key, state, 'PX', max(1, s.lifetime)) -- what was given back in full lives on for a moment
  end
end
return table.concat(reply)
