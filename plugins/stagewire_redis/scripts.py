"""What must be atomic on the server, as Lua. Works on Redis 6.2 and later and on Valkey.

Keys, under the prefix: ``lease:ID`` (its generation, expires with it), ``tied:ID`` (set of keys tied to it),
``generation`` (the last one minted), ``v:KEY`` (a value in one piece) or ``m:KEY`` (the names of its parts), and
``o:KEY`` (the lease that KEY is tied to). All that belongs to a tied key expires with the lease, so a killed owner
leaves nothing behind.

Every script may run twice, because a command is sent again when its connection is lost before the reply.
The scripts make key names from arguments, which a cluster does not allow; it is refused when connecting.
"""

from __future__ import annotations

BATCH = 500
"""How many tied keys one call looks at: no call blocks the server for long."""

_COMMON = """
local P = ARGV[1]
local function each(key, act)
  act(P .. 'v:' .. key); act(P .. 'o:' .. key)
  local parts = redis.call('LRANGE', P .. 'm:' .. key, 0, -1)
  for _, part in ipairs(parts) do act(part) end
  act(P .. 'm:' .. key)
end
local function alive(id, generation)
  return redis.call('GET', P .. 'lease:' .. id) == generation
end
local function untie(key)
  local owner = redis.call('GET', P .. 'o:' .. key)
  if owner then redis.call('SREM', P .. 'tied:' .. owner, key); redis.call('DEL', P .. 'o:' .. key) end
end
local function tie(id, key, ttl)
  untie(key)
  redis.call('SADD', P .. 'tied:' .. id, key)
  redis.call('PEXPIRE', P .. 'tied:' .. id, ttl)
  redis.call('SET', P .. 'o:' .. key, id)
  each(key, function(name) redis.call('PEXPIRE', name, ttl) end)
end
local function drop(key)
  untie(key)
  local found = redis.call('EXISTS', P .. 'v:' .. key, P .. 'm:' .. key)
  each(key, function(name) redis.call('UNLINK', name) end)
  return found
end
"""

GRANT = (
    _COMMON
    + """
-- Run again because its reply was lost, it answers the same.
local held = redis.call('GET', P .. 'lease:' .. ARGV[2])
if held then redis.call('PEXPIRE', P .. 'lease:' .. ARGV[2], ARGV[3]) return held end
-- A generation is greater than all before it also when the server lost its data: it is no less than the time in us.
local now = redis.call('TIME')
local generation = now[1] * 1000000 + now[2]
local last = tonumber(redis.call('GET', P .. 'generation') or '0')
if generation <= last then generation = last + 1 end
local text = string.format('%.0f', generation)
redis.call('SET', P .. 'generation', text, 'PX', 86400000)
redis.call('SET', P .. 'lease:' .. ARGV[2], text, 'PX', ARGV[3])
return text
"""
)

KEEPALIVE = (
    _COMMON
    + """
-- ARGV: prefix, id, generation, ttl, cursor, batch. Returns the next cursor, '0' at the end; nil when it is lost.
local id, ttl = ARGV[2], ARGV[4]
if not alive(id, ARGV[3]) then return false end
redis.call('PEXPIRE', P .. 'lease:' .. id, ttl)
redis.call('PEXPIRE', P .. 'tied:' .. id, ttl)
local page = redis.call('SSCAN', P .. 'tied:' .. id, ARGV[5], 'COUNT', ARGV[6])
for _, key in ipairs(page[2]) do
  each(key, function(name) redis.call('PEXPIRE', name, ttl) end)
end
return page[1]
"""
)

ATTACH = (
    _COMMON
    + """
if not alive(ARGV[2], ARGV[3]) then return 0 end
tie(ARGV[2], ARGV[4], redis.call('PTTL', P .. 'lease:' .. ARGV[2]))
return 1
"""
)

REVOKE = (
    _COMMON
    + """
-- ARGV: prefix, id, generation, batch. The lease ends first, so that nothing is tied to it while its keys go. Ids are
-- never used twice, so what is still tied to a lease that has ended goes too: a call whose reply was lost goes on.
local held = redis.call('GET', P .. 'lease:' .. ARGV[2])
if held and held ~= ARGV[3] then return 0 end
redis.call('DEL', P .. 'lease:' .. ARGV[2])
local keys = redis.call('SPOP', P .. 'tied:' .. ARGV[2], ARGV[4])
for _, key in ipairs(keys) do drop(key) end
return redis.call('SCARD', P .. 'tied:' .. ARGV[2])
"""
)

PUT = (
    _COMMON
    + """
-- ARGV: prefix, key, id, generation, value, part names … ; without parts the value is small and stored as it is. One
-- part becomes the value: a large argument would be copied into Lua and out again, at four times the cost of a SET.
-- Returns 1; 0 when the lease has ended; -1 when a part is gone. In both nothing was changed.
local key, id, count = ARGV[2], ARGV[3], #ARGV - 5
if id ~= '' and not alive(id, ARGV[4]) then return 0 end
local mine = {}
for index = 6, #ARGV do
  if redis.call('EXISTS', ARGV[index]) == 0 then return -1 end
  mine[ARGV[index]] = true
end
local owner = redis.call('GET', P .. 'o:' .. key)
-- The first write is the one that a full server refuses; after a write it lets a script finish.
if count == 0 then redis.call('SET', P .. 'v:' .. key, ARGV[5]) else redis.call('UNLINK', P .. 'v:' .. key) end
for _, part in ipairs(redis.call('LRANGE', P .. 'm:' .. key, 0, -1)) do
  -- Run again because its reply was lost, it finds its own parts in place.
  if not mine[part] then redis.call('UNLINK', part) end
end
redis.call('UNLINK', P .. 'm:' .. key)
for index = 6, #ARGV do
  redis.call('PERSIST', ARGV[index])
  if count == 1 then redis.call('RENAME', ARGV[index], P .. 'v:' .. key)
  else redis.call('RPUSH', P .. 'm:' .. key, ARGV[index]) end
end
if id == '' then id = owner or '' end
if id ~= '' then
  local ttl = redis.call('PTTL', P .. 'lease:' .. id)
  if ttl > 0 then tie(id, key, ttl) else untie(key) end
end
return 1
"""
)

DISCARD = (
    _COMMON
    + """
-- ARGV: prefix, key, part names … ; parts that became visible after all stay.
if redis.call('LINDEX', P .. 'm:' .. ARGV[2], 0) == ARGV[3] then return 0 end
for index = 3, #ARGV do redis.call('UNLINK', ARGV[index]) end
return 1
"""
)

PROBE = """
-- Does what the others do, so that a server that is full or read-only, or a user who may not, is found when connecting.
redis.call('SET', ARGV[1] .. 'probe', '', 'PX', 1000)
return redis.call('DEL', ARGV[1] .. 'probe')
"""
"""Whether this user can write to this server."""

DELETE = _COMMON + "return drop(ARGV[2])"
