-- The algorithms of pkg/limit, number for number: the same functions in the same order, on the same integers. A Lua
-- number is an IEEE double, exact up to 2^53, so every intermediate value here stays an integer below that.
-- State is three integers: at, level, rest (see limit.State). Times are microseconds since the epoch.

local MICRO = 1000000
local FOREVER = 4503599627370496 -- 2^52
local TOKEN_BUCKET = 1

local floor, min, max = math.floor, math.min, math.max

-- (a*b+c)/d by doubling and adding over the bits of a, for products that a double cannot hold.
local function muldiv_long(a, b, c, d)
  local b_quotient = floor(b / d)
  local b_remainder = b - b_quotient * d
  local q, r = 0, 0
  local bit = FOREVER
  while bit >= 1 do
    q, r = q * 2, r * 2
    if r >= d then q, r = q + 1, r - d end
    if a >= bit then
      a = a - bit
      q, r = q + b_quotient, r + b_remainder
      if r >= d then q, r = q + 1, r - d end
    end
    if q >= FOREVER then return FOREVER, 0 end
    bit = bit / 2
  end
  local c_quotient = floor(c / d)
  q, r = q + c_quotient, r + (c - c_quotient * d)
  if r >= d then q, r = q + 1, r - d end
  if q >= FOREVER then return FOREVER, 0 end
  return q, r
end

-- Quotient and remainder of (a*b+c)/d; saturates at 2^52.
local function muldiv(a, b, c, d)
  local product = a * b + c
  if product >= FOREVER then return muldiv_long(a, b, c, d) end
  local q = floor(product / d)
  return q, product - q * d
end

-- Microseconds until a token bucket holds `target` microtokens.
local function until_level(refill, period, level, rest, target)
  local missing = target - level
  if missing <= 0 then return 0 end
  return (muldiv(missing - 1, period, period - rest + refill - 1, refill))
end

-- Tokens of the previous window that still count.
local function weight(period, at, rest, now)
  return (muldiv(rest, period - (now - at), period - 1, period))
end

local function advance(algorithm, capacity, refill, period, at, level, rest, now)
  local elapsed = now - at
  if algorithm == TOKEN_BUCKET then
    if at == 0 then return now, capacity, 0 end
    if rest >= period then rest = 0 end
    local gain, left = muldiv(max(0, elapsed), refill, rest, period)
    if gain >= capacity - level then return now, capacity, 0 end
    return now, level + gain, left
  end
  if at == 0 or elapsed >= 2 * period then return now, 0, 0 end
  if elapsed >= period then return at + period, 0, level end
  if elapsed < 0 then return now, level, rest end
  return at, level, rest
end

local function wait_for(algorithm, capacity, refill, period, at, level, rest, now, cost)
  cost = max(cost, 1)
  if algorithm == TOKEN_BUCKET then
    if cost > floor(capacity / MICRO) then return -1 end
    return until_level(refill, period, level, rest, cost * MICRO)
  end
  if cost > capacity then return -1 end
  local elapsed = now - at
  local room = capacity - cost - level
  if room >= 0 then
    if weight(period, at, rest, now) <= room then return 0 end
    return period - muldiv(room, period, 0, rest) - elapsed
  end
  return 2 * period - muldiv(capacity - cost, period, 0, level) - elapsed
end

local function spend(algorithm, level, cost)
  if algorithm == TOKEN_BUCKET then return level - cost * MICRO end
  return level + cost
end

-- Level and rest of a bucket that gets back what it was charged (see limit.Limit.Refund).
local function refund(algorithm, capacity, refill, period, at, level, rest, now, cost, charged_at)
  if algorithm ~= TOKEN_BUCKET then
    if charged_at >= at then return max(0, level - cost), rest end
    if charged_at >= at - period then return level, max(0, rest - cost) end
    return level, rest
  end
  local regained, part = muldiv(max(0, now - charged_at), refill, 0, period)
  local filled, left = level + cost * MICRO - regained, rest - part
  if left < 0 then filled, left = filled - 1, left + period end
  if filled < level then return level, rest end
  if filled >= capacity then return capacity, 0 end
  return filled, left
end

local function remaining(algorithm, capacity, period, at, level, rest, now)
  if algorithm == TOKEN_BUCKET then return floor(level / MICRO) end
  return max(0, capacity - level - weight(period, at, rest, now))
end

local function reset(algorithm, capacity, refill, period, at, level, rest, now)
  if algorithm == TOKEN_BUCKET then
    return min(until_level(refill, period, level, rest, capacity), FOREVER)
  end
  if level > 0 then return 2 * period - (now - at) end
  if rest > 0 then return period - (now - at) end
  return 0
end
