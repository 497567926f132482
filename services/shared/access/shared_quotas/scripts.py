"""What the store does at once: scripts over what it knows of one tenant.

A tenant has two keys. The hash `state` has the levels of its buckets, each with the limit that it
was filled to, the time they stand for, generations that run, and sums of tokens. The sorted set
`held` has a member for each reservation, `name:tokens:generations`, ranked by the end of its lease.
Time is the store's alone. A reservation whose lease is over counts as settled with all its tokens:
nobody knows what a process used that is gone, and a limit is never exceeded by its death.

All scripts answer alike: 1 or 0 for done or not, what was reached (`requests`, `tokens`,
`generations`), seconds until it is there, levels of requests and tokens, generations that run.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha1

_BEFORE = """
local state, held = KEYS[1], KEYS[2]
local limits = {requests = tonumber(ARGV[1]), tokens = tonumber(ARGV[2])}
local places, lease_s = tonumber(ARGV[3]), tonumber(ARGV[4])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000
local names = {'at', 'requests', 'requests_limit', 'tokens', 'tokens_limit', 'running',
  'reserved', 'settled', 'refunded', 'lapsed'}
local known, s = redis.call('HMGET', state, unpack(names)), {}
for i, name in ipairs(names) do s[name] = tonumber(known[i] or nil) end
for _, name in ipairs({'running', 'reserved', 'settled', 'refunded', 'lapsed'}) do
  s[name] = s[name] or 0
end

local passed_s = math.max(0, now - (s.at or now))
for name in pairs({requests = 1, tokens = 1}) do
  local level, was, is = s[name], s[name .. '_limit'], limits[name]
  if level then
    level = math.min(was, level + passed_s * was / 60)
    s[name] = level
  end
  if is then
    -- Another limit is neither a present nor a loss for who is in the middle.
    s[name] = level and level * is / was or is
    s[name .. '_limit'] = is
  end
end

local function of_member(member)
  local tokens, generations = string.match(member, ':(%d+):(%d+)$')
  return tonumber(tokens), tonumber(generations)
end

local function hold(tokens, generations)
  s.running, s.reserved = s.running + generations, s.reserved + tokens
  if limits.tokens then s.tokens = s.tokens - tokens end
end

local function end_leases()
  local over = redis.call('ZRANGEBYSCORE', held, '-inf', string.format('%.6f', now),
    'LIMIT', 0, 1000)
  for _, member in ipairs(over) do
    local tokens, generations = of_member(member)
    redis.call('ZREM', held, member)
    s.running, s.settled = s.running - generations, s.settled + tokens
    s.lapsed = s.lapsed + tokens
  end
end

local function until_there(name, amount)
  return (math.min(amount, limits[name]) - s[name]) * 60 / limits[name]
end

local function answer(done, reached, wait_s)
  local fields, last_s = {'at', string.format('%.6f', now)}, math.max(60, lease_s)
  for i = 2, #names do
    if s[names[i]] then
      table.insert(fields, names[i])
      table.insert(fields, string.format('%.17g', s[names[i]]))
    end
  end
  for name, limit in pairs(limits) do
    last_s = math.max(last_s, (limit - s[name]) * 60 / limit)
  end
  redis.call('HSET', state, unpack(fields))
  -- Who has not come for so long has a full bucket, and nothing that runs.
  for _, key in ipairs(KEYS) do
    redis.call('PEXPIRE', key, string.format('%.0f', (last_s + 60) * 1000))
  end
  local function told(name) return limits[name] and string.format('%.6f', s[name]) or '' end
  return {done, reached, string.format('%.6f', wait_s), told('requests'), told('tokens'), s.running}
end
"""

_TAKE = """
local member, requests = ARGV[5], tonumber(ARGV[6])
local tokens, generations = of_member(member)
end_leases()
if limits.requests and requests > 0 and until_there('requests', requests) > 0 then
  return answer(0, 'requests', until_there('requests', requests))
end
if limits.tokens and tokens > 0 and until_there('tokens', tokens) > 0 then
  return answer(0, 'tokens', until_there('tokens', tokens))
end
-- One that wants more than all places gets them when it is alone.
if places and generations > 0 and s.running + math.min(generations, places) > places then
  return answer(0, 'generations', 0)
end
if limits.requests then s.requests = s.requests - requests end
if tokens + generations > 0 then
  redis.call('ZADD', held, string.format('%.6f', now + lease_s), member)
  hold(tokens, generations)
end
return answer(1, '', 0)
"""

_SETTLE = """
local member, used = ARGV[5], tonumber(ARGV[6])
local is_held = redis.call('ZREM', held, member)
if is_held == 1 then
  local tokens, generations = of_member(member)
  s.running, s.settled = s.running - generations, s.settled + used
  if used > tokens then
    s.reserved = s.reserved + used - tokens
  else
    s.refunded = s.refunded + tokens - used
  end
  if limits.tokens then s.tokens = math.min(limits.tokens, s.tokens + tokens - used) end
end
end_leases()
return answer(is_held, '', 0)
"""

_RENEW = """
for i = 5, #ARGV do
  local is_new = redis.call('ZADD', held, string.format('%.6f', now + lease_s), ARGV[i])
  -- The store was empty, or did not hear of us for too long: what runs is held again.
  if is_new == 1 then hold(of_member(ARGV[i])) end
end
end_leases()
return answer(1, '', 0)
"""


@dataclass(frozen=True, slots=True)
class Script:
    """Args: text: in Lua; digest: its name for the store."""

    text: str
    digest: str


def _script(text: str) -> Script:
    whole = _BEFORE + text
    return Script(whole, sha1(whole.encode(), usedforsecurity=False).hexdigest())


TAKE = _script(_TAKE)
"""Member, requests: a request comes, or puts aside what its member says."""

SETTLE = _script(_SETTLE)
"""Member, tokens that were used: a reservation ends; one that is not held any more is left alone,
so that it can be told twice."""

RENEW = _script(_RENEW)
"""Members: reservations that go on."""

SCRIPTS = (TAKE, SETTLE, RENEW)
