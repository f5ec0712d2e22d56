/* redis_lua.h - the Lua scripts, each atomic in Redis. Private to the Redis
 * backend.
 *
 * Every script touches keys of one hash tag only, so of one slot: that is the
 * rule of Redis Cluster. The first key is given in KEYS; others of the same
 * session are made from it.
 *
 *   mcp:session:{ID}         hash  doc, at, shares
 *   mcp:conversation:{ID}    hash  n = number of the current one, s:N = the
 *                                  last seq of conversation N
 *   mcp:conversation:{ID}:N  list  "AT\nDOC" of each entry; beside it
 *                                  mcp:conversation:{ID}:N:find, its index
 *                                  (redis_lua_find.h)
 *   mcp:call:{ID}            hash  id -> "STATE SEQ AT\nDOC", '' = last seq
 *   mcp:lock:{NAME}          text  "FENCE TOKEN OWNER", with an expiry
 *   mcp:fence:{NAME}         text  the last fence, kept a week
 *   mcp:audit:{ID}           zset  at -> "SEQ\nDOC" (SEQ has 16 digits)
 *   mcp:audit:{ID}:n         text  last SEQ. Rows of no session have none: a
 *                                  name with {} is in a slot of its own, so
 *                                  their SEQ is the time in microseconds
 *   mcp:marks                hash  id -> DOC (set beside the scripts); format:
 *                                  the record of the version
 *   mcp:budget:{budget}:r:N  hash  second -> calls in it, of the last minute
 *   mcp:budget:{budget}:h:N  zset  end of its term -> holder
 *   mcp:budget:{budget}:d:D  hash  name -> sum, of the day D
 *
 * Redis does not undo the changes of a script that fails. So the write script
 * first reads and decides everything on its own copy of the session, and then
 * writes. Its first change (HSETNX, INCR) is one that Redis refuses when it is
 * out of memory or a replica. */
#ifndef MO_STORE_REDIS_LUA_H
#define MO_STORE_REDIS_LUA_H

enum mo_lua {
    MO_LUA_WRITE,
    MO_LUA_HISTORY,
    MO_LUA_CALLS,
    MO_LUA_AUDIT,
    MO_LUA_MARKS,
    MO_LUA_TRY,
    MO_LUA_RENEW,
    MO_LUA_DROP,
    MO_LUA_BREAK,
    MO_LUA_UNLIST,
    MO_LUA_COUNT,
    MO_LUA_DAY,
    MO_LUA_BEHIND,
    MO_LUA_INDEX,
    MO_LUA_FIND,
    MO_LUA_VERSION,
    MO_LUA_N
};

#define MO_LUA_AGAIN "32" /* MO_STORE_AGAIN */

/* KEYS: session, conversation, call, lock, audit; five times audit for a
 *       batch that belongs to no session
 * ARGV: fence ('0': any), history ttl, audit ttl, now, n, then for each write
 *       kind (a letter), id, to (of an entry: 1, asked for again), from
 *       (bits), at, doc
 * Answer: {code, which, conversation, seq}; code 0 or a letter. */
#define MO_LUA_WRITE_TEXT                                                      \
    "local ks, kc, kk, kl, ka = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]\n" \
    "local httl, attl = tonumber(ARGV[2]), tonumber(ARGV[3])\n"                \
    "local now, n = tonumber(ARGV[4]), tonumber(ARGV[5])\n"                    \
    "if ARGV[1] ~= '0' then\n"                                                 \
    "  local l = redis.call('GET', kl)\n"                                      \
    "  if not l or l:match('^(%d+) ') ~= ARGV[1] then\n"                       \
    "    return {'fence', 0, 0, 0}\n"                                          \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "local known = redis.call('EXISTS', ks) == 1\n"                            \
    "local gone, makes = false, false\n"                                       \
    "local calls = {}\n"                                                       \
    "local function state(id)\n"                                               \
    "  if calls[id] ~= nil then return calls[id] end\n"                        \
    "  if gone then return false end\n"                                        \
    "  local c = redis.call('HGET', kk, id)\n"                                 \
    "  return c and tonumber(c:match('^(%d+) ')) or false\n"                   \
    "end\n"                                                                    \
    "local function bit(set, i)\n"                                             \
    "  return math.floor(set / 2 ^ i) % 2 == 1\n"                              \
    "end\n"                                                                    \
    "for i = 1, n do\n"                                                        \
    "  local b = 5 + (i - 1) * 6\n"                                            \
    "  local k, id = ARGV[b + 1], ARGV[b + 2]\n"                               \
    "  if k == 's' or k == 't' or k == 'e' or k == 'n' or k == 'c' then\n"     \
    "    makes = true\n"                                                       \
    "  end\n"                                                                  \
    "  if k == 's' then known = true\n"                                        \
    "  elseif k == 'x' then known = false\n"                                   \
    "  elseif k == 'f' then known, gone, calls = false, true, {}\n"            \
    "  elseif k ~= 'm' and k ~= 'a' and k ~= 'k' and not known then\n"         \
    "    return {'session', i - 1, 0, 0}\n"                                    \
    "  end\n"                                                                  \
    "  if k == 'c' then\n"                                                     \
    "    if state(id) then return {'exists', i - 1, 0, 0} end\n"               \
    "    calls[id] = tonumber(ARGV[b + 3])\n"                                  \
    "  elseif k == 'm' then\n"                                                 \
    "    local s = state(id)\n"                                                \
    "    if not s then return {'call', i - 1, 0, 0} end\n"                     \
    "    if not bit(tonumber(ARGV[b + 4]), s) then\n"                          \
    "      return {'state', i - 1, 0, 0}\n"                                    \
    "    end\n"                                                                \
    "    calls[id] = tonumber(ARGV[b + 3])\n"                                  \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "local conv, seq, made = 0, 0, 0\n"                                        \
    "if kc ~= ka then\n"                                                       \
    "  made = redis.call('HSETNX', kc, 'n', 1)\n"                              \
    "  conv = tonumber(redis.call('HGET', kc, 'n'))\n"                         \
    "end\n"                                                                    \
    "local function keep(key)\n"                                               \
    "  if httl > 0 then redis.call('PEXPIRE', key, httl) end\n"                \
    "end\n"                                                                    \
    "local function strip()\n"                                                 \
    "  local v = redis.call('ZRANGE', ka, 0, -1, 'WITHSCORES')\n"              \
    "  for i = 1, #v, 2 do\n"                                                  \
    "    local s, doc = v[i]:match('^(%d+)\\n(.*)$')\n"                        \
    "    if doc and (doc:find('\"args\":', 1, true) or\n"                      \
    "        doc:find('\"content\":', 1, true)) then\n"                        \
    "      local ok, d = pcall(cjson.decode, doc)\n"                           \
    "      if not ok or type(d) ~= 'table' then d = {} end\n"                  \
    "      d.args, d.content = nil, nil\n"                                     \
    "      redis.call('ZREM', ka, v[i])\n"                                     \
    "      redis.call('ZADD', ka, v[i + 1], s .. '\\n' ..\n"                   \
    "        (next(d) and cjson.encode(d) or '{}'))\n"                         \
    "    end\n"                                                                \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "local function fields(c)\n"                                               \
    "  return c:match('^%d+ (%d+) (%d+)\\n(.*)$')\n"                           \
    "end\n"                                                                    \
    "for i = 1, n do\n"                                                        \
    "  local b = 5 + (i - 1) * 6\n"                                            \
    "  local k, id, to = ARGV[b + 1], ARGV[b + 2], ARGV[b + 3]\n"              \
    "  local at, doc = ARGV[b + 5], ARGV[b + 6]\n"                             \
    "  if k == 's' or k == 't' then\n"                                         \
    "    if k == 's' then redis.call('HSET', ks, 'doc', doc) end\n"            \
    "    local was = tonumber(redis.call('HGET', ks, 'at') or 0)\n"            \
    "    if tonumber(at) > was then redis.call('HSET', ks, 'at', at) end\n"    \
    "    if k == 's' then\n"                                                   \
    "      redis.call('PERSIST', kc)\n"                                        \
    "      redis.call('PERSIST', kk)\n"                                        \
    "    end\n"                                                                \
    "  elseif k == 'h' then\n"                                                 \
    "    redis.call('HSET', ks, 'shares', doc)\n"                              \
    "  elseif k == 'x' then\n"                                                 \
    "    redis.call('DEL', ks)\n"                                              \
    "    keep(kc)\n"                                                           \
    "    keep(kk)\n"                                                           \
    "  elseif k == 'f' then\n"                                                 \
    "    for c = 1, conv do\n"                                                 \
    "      local list = kc .. ':' .. c\n"                                      \
    "      redis.call('DEL', list, list .. ':find')\n"                         \
    "    end\n"                                                                \
    "    redis.call('DEL', ks, kc, kk)\n"                                      \
    "    strip()\n"                                                            \
    "    conv = 1\n"                                                           \
    "  elseif k == 'e' then\n"                                                 \
    "    local list = kc .. ':' .. conv\n"                                     \
    "    local tail = to == '1' and\n"                                         \
    "        redis.call('LRANGE', list, -" MO_LUA_AGAIN ", -1) or {}\n"        \
    "    local j = #tail\n"                                                    \
    "    while j > 0 and\n"                                                    \
    "        tail[j]:sub(tail[j]:find('\\n', 1, true) + 1) ~= doc do\n"        \
    "      j = j - 1\n"                                                        \
    "    end\n"                                                                \
    "    if j > 0 then\n"                                                      \
    "      seq = redis.call('HGET', kc, 's:' .. conv) + j - #tail\n"           \
    "    else\n"                                                               \
    "      seq = redis.call('HINCRBY', kc, 's:' .. conv, 1)\n"                 \
    "      redis.call('HSETNX', kc, 'n', conv)\n"                              \
    "      redis.call('RPUSH', list, at .. '\\n' .. doc)\n"                    \
    "    end\n"                                                                \
    "    keep(list)\n"                                                         \
    "  elseif k == 'n' then\n"                                                 \
    "    conv = conv + 1\n"                                                    \
    "    redis.call('HSET', kc, 'n', conv)\n"                                  \
    "  elseif k == 'c' then\n"                                                 \
    "    local s = redis.call('HINCRBY', kk, '', 1)\n"                         \
    "    redis.call('HSET', kk, id,\n"                                         \
    "      to .. ' ' .. s .. ' ' .. at .. '\\n' .. doc)\n"                     \
    "  elseif k == 'm' then\n"                                                 \
    "    local s, was, old = fields(redis.call('HGET', kk, id))\n"             \
    "    if tonumber(was) > tonumber(at) then at = was end\n"                  \
    "    if doc == '' then doc = old end\n"                                    \
    "    redis.call('HSET', kk, id,\n"                                         \
    "      to .. ' ' .. s .. ' ' .. at .. '\\n' .. doc)\n"                     \
    "  elseif k == 'a' then\n"                                                 \
    "    local s\n"                                                            \
    "    if ka:sub(-2) == '{}' then\n"                                         \
    "      local t = redis.call('TIME')\n"                                     \
    "      s = t[1] * 1000000 + t[2] + i\n"                                    \
    "    else\n"                                                               \
    "      s = redis.call('INCR', ka .. ':n')\n"                               \
    "    end\n"                                                                \
    "    redis.call('ZADD', ka, at, string.format('%016d', s) .. '\\n' ..\n"   \
    "      doc)\n"                                                             \
    "    if attl > 0 then\n"                                                   \
    "      redis.call('ZREMRANGEBYSCORE', ka, '-inf',\n"                       \
    "        '(' .. string.format('%.0f', now - attl))\n"                      \
    "      redis.call('PEXPIRE', ka, attl)\n"                                  \
    "      if ka:sub(-2) ~= '{}' then\n"                                       \
    "        redis.call('PEXPIRE', ka .. ':n', attl)\n"                        \
    "      end\n"                                                              \
    "    end\n"                                                                \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "if made == 1 and not makes then redis.call('DEL', kc) end\n"              \
    "return {0, 0, conv, seq}\n"

/* KEYS: conversation. ARGV: number (0: the present), after, limit, newest,
 * bytes. Answer: {number, seq of the first, more, entry...} */
#define MO_LUA_HISTORY_TEXT                                                    \
    "local kc = KEYS[1]\n"                                                     \
    "local conv, after = tonumber(ARGV[1]), tonumber(ARGV[2])\n"               \
    "local limit, room = tonumber(ARGV[3]), tonumber(ARGV[5])\n"               \
    "if conv == 0 then conv = tonumber(redis.call('HGET', kc, 'n') or 1) "     \
    "end\n"                                                                    \
    "local list = kc .. ':' .. string.format('%.0f', conv)\n"                  \
    "local len = redis.call('LLEN', list)\n"                                   \
    "local last = tonumber(redis.call('HGET', kc, 's:' ..\n"                   \
    "  string.format('%.0f', conv)) or len)\n"                                 \
    "local base = last - len\n" /* seq of index i is base + i + 1 */           \
    "local from = math.max(after - base, 0)\n"                                 \
    "local to = len - 1\n"                                                     \
    "local more = 0\n"                                                         \
    "if to - from + 1 > limit then\n"                                          \
    "  more = 1\n"                                                             \
    "  if ARGV[4] == '1' then from = to - limit + 1\n"                         \
    "  else to = from + limit - 1 end\n"                                       \
    "end\n"                                                                    \
    "local out, n = {}, 0\n"                                                   \
    "if ARGV[4] == '1' then\n"                                                 \
    "  local i = to\n"                                                         \
    "  while i >= from do\n"                                                   \
    "    local e = redis.call('LINDEX', list, i)\n"                            \
    "    room = room - #e - 256\n"                                             \
    "    if room < 0 and n > 0 then more = 1 break end\n"                      \
    "    n = n + 1\n"                                                          \
    "    out[n] = e\n"                                                         \
    "    i = i - 1\n"                                                          \
    "  end\n"                                                                  \
    "  local back = {}\n"                                                      \
    "  for j = 1, n do back[j] = out[n + 1 - j] end\n"                         \
    "  out = back\n"                                                           \
    "  from = i + 1\n"                                                         \
    "else\n"                                                                   \
    "  for i = from, to, 8 do\n"                                               \
    "    local part = redis.call('LRANGE', list, i, math.min(i + 7, to))\n"    \
    "    for _, e in ipairs(part) do\n"                                        \
    "      room = room - #e - 256\n"                                           \
    "      if room < 0 and n > 0 then more = 1 break end\n"                    \
    "      n = n + 1\n"                                                        \
    "      out[n] = e\n"                                                       \
    "    end\n"                                                                \
    "    if room < 0 then break end\n"                                         \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "return {conv, base + from + 1, more, out}\n"

/* KEYS: call. ARGV: states (bits), after, limit, bytes. Answer:
 * {more, {id, value, id, value...}} in the order of their seq. */
#define MO_LUA_CALLS_TEXT                                                      \
    "local all = redis.call('HGETALL', KEYS[1])\n"                             \
    "local set, after = tonumber(ARGV[1]), tonumber(ARGV[2])\n"                \
    "local limit, room = tonumber(ARGV[3]), tonumber(ARGV[4])\n"               \
    "local hits = {}\n"                                                        \
    "for i = 1, #all, 2 do\n"                                                  \
    "  local state, seq = all[i + 1]:match('^(%d+) (%d+) ')\n"                 \
    "  if all[i] ~= '' and tonumber(seq) > after and\n"                        \
    "    math.floor(set / 2 ^ tonumber(state)) % 2 == 1 then\n"                \
    "    hits[#hits + 1] = {tonumber(seq), all[i], all[i + 1]}\n"              \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "table.sort(hits, function(a, b) return a[1] < b[1] end)\n"                \
    "local out, more = {}, 0\n"                                                \
    "for i, h in ipairs(hits) do\n"                                            \
    "  room = room - #h[3] - 256\n"                                            \
    "  if i > limit or (room < 0 and i > 1) then more = 1 break end\n"         \
    "  out[#out + 1] = h[2]\n"                                                 \
    "  out[#out + 1] = h[3]\n"                                                 \
    "end\n"                                                                    \
    "return {more, out}\n"

/* KEYS: audit. ARGV: after, before (as ZRANGEBYSCORE wants them), text, limit,
 * bytes. Answer: {at, member, at, member...}, newest first, one more than the
 * limit if there is one. */
#define MO_LUA_AUDIT_TEXT                                                      \
    "local limit, room = tonumber(ARGV[4]), tonumber(ARGV[5])\n"               \
    "local out, off = {}, 0\n"                                                 \
    "while true do\n"                                                          \
    "  local part = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[2],\n"        \
    "    ARGV[1], 'WITHSCORES', 'LIMIT', off, 64)\n"                           \
    "  for i = 1, #part, 2 do\n"                                               \
    "    local doc = part[i]\n"                                                \
    "    if ARGV[3] == '' or doc:find(ARGV[3], 18, true) then\n"               \
    "      out[#out + 1] = part[i + 1]\n"                                      \
    "      out[#out + 1] = doc\n"                                              \
    "      room = room - #doc\n"                                               \
    "      if #out / 2 > limit or room < 0 then return out end\n"              \
    "    end\n"                                                                \
    "  end\n"                                                                  \
    "  if #part < 128 then return out end\n"                                   \
    "  off = off + 64\n"                                                       \
    "end\n"

/* KEYS: marks. ARGV: beginning of the ids, the last id seen, limit, bytes.
 * Answer: {more, {id, doc, id, doc...}} in the order of the ids' bytes: Lua's
 * own order of strings is that of the server's locale. */
#define MO_LUA_MARKS_TEXT                                                      \
    "local function less(a, b)\n"                                              \
    "  for i = 1, math.min(#a, #b) do\n"                                       \
    "    local x, y = a:byte(i), b:byte(i)\n"                                  \
    "    if x ~= y then return x < y end\n"                                    \
    "  end\n"                                                                  \
    "  return #a < #b\n"                                                       \
    "end\n"                                                                    \
    "local ids = {}\n"                                                         \
    "for _, id in ipairs(redis.call('HKEYS', KEYS[1])) do\n"                   \
    "  if less(ARGV[2], id) and id:sub(1, #ARGV[1]) == ARGV[1] then\n"         \
    "    ids[#ids + 1] = id\n"                                                 \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "table.sort(ids, less)\n"                                                  \
    "local limit, room = tonumber(ARGV[3]), tonumber(ARGV[4])\n"               \
    "local out, more = {}, 0\n"                                                \
    "for i, id in ipairs(ids) do\n"                                            \
    "  if i > limit then more = 1 break end\n"                                 \
    "  local doc = redis.call('HGET', KEYS[1], id)\n"                          \
    "  room = room - #doc - 256\n"                                             \
    "  if room < 0 and i > 1 then more = 1 break end\n"                        \
    "  out[#out + 1] = id\n"                                                   \
    "  out[#out + 1] = doc\n"                                                  \
    "end\n"                                                                    \
    "return {more, out}\n"

/* KEYS: lock, fence. ARGV: token, owner, ttl. Answer: {1, fence} or
 * {0, fence, owner, ms left}. A fence is larger than the one before, and not
 * smaller than the microseconds of the clock: also a server that was emptied
 * gives out larger ones than it ever did. */
#define MO_LUA_TRY_TEXT                                                        \
    "local l = redis.call('GET', KEYS[1])\n"                                   \
    "if l then\n"                                                              \
    "  local fence, token, owner = l:match('^(%d+) (%S+) (%S+)$')\n"           \
    "  if token ~= ARGV[1] then\n"                                             \
    "    return {0, fence, owner, redis.call('PTTL', KEYS[1])}\n"              \
    "  end\n"                                                                  \
    "  redis.call('PEXPIRE', KEYS[1], ARGV[3])\n"                              \
    "  return {1, fence}\n"                                                    \
    "end\n"                                                                    \
    "local t = redis.call('TIME')\n"                                           \
    "local fence = tonumber(t[1]) * 1000000 + tonumber(t[2])\n"                \
    "local last = tonumber(redis.call('GET', KEYS[2]) or 0)\n"                 \
    "if fence <= last then fence = last + 1 end\n"                             \
    "local text = string.format('%.0f', fence)\n"                              \
    "redis.call('SET', KEYS[2], text, 'PX', 604800000)\n"                      \
    "redis.call('SET', KEYS[1], text .. ' ' .. ARGV[1] .. ' ' .. ARGV[2],\n"   \
    "  'PX', ARGV[3])\n"                                                       \
    "return {1, text}\n"

/* KEYS: lock. ARGV: token, ttl. */
#define MO_LUA_RENEW_TEXT                                                      \
    "local l = redis.call('GET', KEYS[1])\n"                                   \
    "if not l or l:match('^%d+ (%S+) ') ~= ARGV[1] then return 0 end\n"        \
    "return redis.call('PEXPIRE', KEYS[1], ARGV[2])\n"

/* KEYS: lock. ARGV: token, channel, name. */
#define MO_LUA_DROP_TEXT                                                       \
    "local l = redis.call('GET', KEYS[1])\n"                                   \
    "if not l or l:match('^%d+ (%S+) ') ~= ARGV[1] then return 0 end\n"        \
    "redis.call('DEL', KEYS[1])\n"                                             \
    "redis.call('PUBLISH', ARGV[2], ARGV[3])\n"                                \
    "return 1\n"

/* KEYS: lock. ARGV: fence, owner, channel, name. */
#define MO_LUA_BREAK_TEXT                                                      \
    "local l = redis.call('GET', KEYS[1])\n"                                   \
    "local fence, owner = (l or ''):match('^(%d+) %S+ (%S+)$')\n"              \
    "if fence ~= ARGV[1] or owner ~= ARGV[2] then return 0 end\n"              \
    "redis.call('DEL', KEYS[1])\n"                                             \
    "redis.call('PUBLISH', ARGV[3], ARGV[4])\n"                                \
    "return 1\n"

/* KEYS: index. ARGV: member, the score it had when its row was not found. */
#define MO_LUA_UNLIST_TEXT                                                     \
    "if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end\n" \
    "return redis.call('ZREM', KEYS[1], ARGV[1])\n"

/* KEYS: mcp:budget:{budget}. ARGV: n, term, time to keep a day, most names of
 * a day, largest sum, then for each counter kind (r, h, d), name, limit, add,
 * day, holder.
 * Answer: {1 or 0, which has no room, time to wait, today}. Seconds of the
 * future (the clock went back) count as now, and terms end no later than one
 * that begins now. */
#define MO_LUA_COUNT_TEXT                                                      \
    "local t = redis.call('TIME')\n"                                           \
    "local s = tonumber(t[1])\n"                                               \
    "local ms = s * 1000 + math.floor(tonumber(t[2]) / 1000)\n"                \
    "local today = math.floor(s / 86400)\n"                                    \
    "local term, keep, names, most = tonumber(ARGV[2]), ARGV[3],\n"            \
    "  tonumber(ARGV[4]), tonumber(ARGV[5])\n"                                 \
    "local function sum(c)\n"                                                  \
    "  local n = redis.call('HGET', c.key, c.name)\n"                          \
    "  return n and tonumber(n)\n"                                             \
    "end\n"                                                                    \
    "local v = {}\n"                                                           \
    "for i = 1, tonumber(ARGV[1]) do\n"                                        \
    "  local b = 5 + (i - 1) * 6\n"                                            \
    "  local c = {k = ARGV[b + 1], name = ARGV[b + 2],\n"                      \
    "    limit = tonumber(ARGV[b + 3]), add = tonumber(ARGV[b + 4]),\n"        \
    "    day = tonumber(ARGV[b + 5]), who = ARGV[b + 6]}\n"                    \
    "  c.key = KEYS[1] .. ':' .. c.k .. ':' .. c.name\n"                       \
    "  v[i] = c\n"                                                             \
    "  if c.k == 'r' then\n"                                                   \
    "    local f, all, first, ahead = redis.call('HGETALL', c.key), 0, s, 0\n" \
    "    for j = 1, #f, 2 do\n"                                                \
    "      local at, n = tonumber(f[j]), tonumber(f[j + 1])\n"                 \
    "      if at <= s - 61 or at > s then\n"                                   \
    "        redis.call('HDEL', c.key, f[j])\n"                                \
    "      end\n"                                                              \
    "      if at > s - 61 then\n"                                              \
    "        all = all + n\n"                                                  \
    "        if at > s then ahead = ahead + n end\n"                           \
    "        if at < first then first = at end\n"                              \
    "      end\n"                                                              \
    "    end\n"                                                                \
    "    if ahead > 0 then redis.call('HINCRBY', c.key, s, ahead) end\n"       \
    "    if c.limit > 0 and all + c.add > c.limit then\n"                      \
    "      return {0, i - 1, (first + 61) * 1000 - ms, today}\n"               \
    "    end\n"                                                                \
    "  elseif c.k == 'h' then\n"                                               \
    "    redis.call('ZREMRANGEBYSCORE', c.key, '-inf', ms)\n"                  \
    "    for _, who in ipairs(redis.call('ZRANGEBYSCORE', c.key,\n"            \
    "        ms + term + 1, '+inf')) do\n"                                     \
    "      redis.call('ZADD', c.key, ms + term, who)\n"                        \
    "    end\n"                                                                \
    "    if c.add >= 0 and c.limit > 0 and\n"                                  \
    "        not redis.call('ZSCORE', c.key, c.who) and\n"                     \
    "        redis.call('ZCARD', c.key) >= c.limit then\n"                     \
    "      return {0, i - 1, 0, today}\n"                                      \
    "    end\n"                                                                \
    "  else\n"                                                                 \
    "    if c.day == 0 then c.day = today end\n"                               \
    "    c.key = KEYS[1] .. ':d:' .. string.format('%.0f', c.day)\n"           \
    "    c.now = sum(c)\n"                                                     \
    "    if not c.now and redis.call('HLEN', c.key) >= names then\n"           \
    "      c.name = 'other' .. (c.name:match('\\t.*') or '')\n"                \
    "      c.now = sum(c)\n"                                                   \
    "    end\n"                                                                \
    "    if c.limit > 0 and (c.now or 0) + c.add > c.limit then\n"             \
    "      return {0, i - 1, (today + 1) * 86400000 - ms, today}\n"            \
    "    end\n"                                                                \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "for _, c in ipairs(v) do\n"                                               \
    "  if c.k == 'r' then\n"                                                   \
    "    redis.call('HINCRBY', c.key, s, c.add)\n"                             \
    "    redis.call('PEXPIRE', c.key, 62000)\n"                                \
    "  elseif c.k == 'h' and c.add < 0 then\n"                                 \
    "    redis.call('ZREM', c.key, c.who)\n"                                   \
    "  elseif c.k == 'h' then\n"                                               \
    "    redis.call('ZADD', c.key, ms + term, c.who)\n"                        \
    "    redis.call('PEXPIRE', c.key, term)\n"                                 \
    "  else\n"                                                                 \
    "    local n = math.max(0, math.min(most, (c.now or 0) + c.add))\n"        \
    "    redis.call('HSET', c.key, c.name, string.format('%.0f', n))\n"        \
    "    redis.call('PEXPIRE', c.key, keep)\n"                                 \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "return {1, 0, 0, today}\n"

/* KEYS: mcp:budget:{budget}:d:D. ARGV: beginning of the names, the last name
 * seen, limit. Answer: {more, {name, sum, name, sum...}} in the order of the
 * names' bytes. */
#define MO_LUA_DAY_TEXT                                                        \
    "local p, last = ARGV[1], ARGV[2]\n"                                       \
    "local function less(a, b)\n"                                              \
    "  for i = 1, math.min(#a, #b) do\n"                                       \
    "    local x, y = a:byte(i), b:byte(i)\n"                                  \
    "    if x ~= y then return x < y end\n"                                    \
    "  end\n"                                                                  \
    "  return #a < #b\n"                                                       \
    "end\n"                                                                    \
    "local f, ids, sums = redis.call('HGETALL', KEYS[1]), {}, {}\n"            \
    "for i = 1, #f, 2 do\n"                                                    \
    "  if f[i]:sub(1, #p) == p and less(last, f[i]) then\n"                    \
    "    ids[#ids + 1] = f[i]\n"                                               \
    "    sums[f[i]] = f[i + 1]\n"                                              \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "table.sort(ids, less)\n"                                                  \
    "local out, limit = {}, tonumber(ARGV[3])\n"                               \
    "for i = 1, math.min(#ids, limit) do\n"                                    \
    "  out[#out + 1] = ids[i]\n"                                               \
    "  out[#out + 1] = sums[ids[i]]\n"                                         \
    "end\n"                                                                    \
    "return {#ids > limit and 1 or 0, out}\n"

/* KEYS: mcp:marks. ARGV: our format, our record, format without a record. An
 * older record is replaced; Redis may refuse that, when it is out of memory,
 * and then the next start does it. Answer: the record that counts, or nil. */
#define MO_LUA_VERSION_TEXT                                                    \
    "local d = redis.call('HGET', KEYS[1], 'format')\n"                        \
    "local f = d and tonumber(d:match('\"format\":(%d+)')) or not d\n"         \
    "  and tonumber(ARGV[3])\n"                                                \
    "if f and f < tonumber(ARGV[1]) then\n"                                    \
    "  redis.pcall('HSET', KEYS[1], 'format', ARGV[2])\n"                      \
    "  return ARGV[2]\n"                                                       \
    "end\n"                                                                    \
    "return d\n"

#endif
