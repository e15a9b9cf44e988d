-- One bucket of retry tokens, in thousandths.
-- KEYS[1] bucket. ARGV: size, earned since the last call, to take (0 = nothing), ttl in ms.
-- Returns 1 if the amount was taken, else 0. A bucket that does not exist is full.
local size, earned, take = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local have = math.min(size, tonumber(redis.call('GET', KEYS[1]) or size) + earned)
local taken = 0
if have >= take then
  have = have - take
  taken = 1
end
redis.call('SET', KEYS[1], string.format('%d', have), 'PX', ARGV[4])
return taken
