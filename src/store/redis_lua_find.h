/* redis_lua_find.h - the Lua scripts of the full-text index. Private to the
 * Redis backend.
 *
 *   mcp:conversation:{ID}:N:find  hash, the index of conversation N:
 *       n     seq of the last entry that is indexed
 *       b     seq before the first entry of the list when it was indexed
 *       d, t  entries with words; words in all of them
 *       P:l   words of each entry of part P, 4 hexadecimal digits each
 *       P:B   bucket B of part P: "\nWORD\tPOSTINGS\nWORD\tPOSTINGS\n";
 *             a posting is "SEQ " or "SEQxTIMES ". A word may come again,
 *             with later entries: adding to a bucket needs no look into it
 *
 * Parts are MO_REDIS_PART entries long, so that a long conversation costs no
 * more for each entry than a short one. A word is in the bucket that its hash
 * names (redis_index.c). Words have no characters below '!'. Buckets instead of
 * a field for each word: a field costs Redis about 70 bytes, a word and its
 * first posting about 10.
 *
 * The index is in the slot of its session and expires with the conversation.
 * It is complete if n is the last seq and b fits the list, else it is behind.
 * Nothing else says so: an index that was lost is only behind. */
#ifndef MO_STORE_REDIS_LUA_FIND_H
#define MO_STORE_REDIS_LUA_FIND_H

/* The newest conversations of KEYS[1], ARGV[1] of them: first to conv. look(c):
 * the list of one, its length, its last seq, the seq before its first entry. */
#define MO_LUA_CONVERSATIONS                                                   \
    "local kc = KEYS[1]\n"                                                     \
    "local function look(c)\n"                                                 \
    "  local list = kc .. ':' .. c\n"                                          \
    "  local len = redis.call('LLEN', list)\n"                                 \
    "  local last = tonumber(redis.call('HGET', kc, 's:' .. c) or len)\n"      \
    "  return list, len, last, last - len\n"                                   \
    "end\n"                                                                    \
    "local conv = tonumber(redis.call('HGET', kc, 'n') or 0)\n"                \
    "local first = math.max(1, conv + 1 - tonumber(ARGV[1]))\n"

/* KEYS: conversation. ARGV: conversations to look at, entries, bytes, entries
 * of a part. Answer: {number, n, {entry...}}: the entries that follow the index
 * of the newest conversation whose index is behind, of one part; number 0: none
 * is behind. */
#define MO_LUA_BEHIND_TEXT                                                     \
    MO_LUA_CONVERSATIONS                                                       \
    "local most, room = tonumber(ARGV[2]), tonumber(ARGV[3])\n"                \
    "local part = tonumber(ARGV[4])\n"                                         \
    "for c = conv, first, -1 do\n"                                             \
    "  local list, len, last, base = look(c)\n"                                \
    "  local h = redis.call('HMGET', list .. ':find', 'n', 'b')\n"             \
    "  local n = tonumber(h[1] or -1)\n"                                       \
    "  if tonumber(h[2] or -1) ~= base or n > last then n = base end\n"        \
    "  if n < last and len > 0 then\n"                                         \
    "    local out = {}\n"                                                     \
    "    local stop = (math.floor(n / part) + 1) * part\n"                     \
    "    for seq = n + 1, math.min(last, n + most, stop) do\n"                 \
    "      local e = redis.call('LINDEX', list, seq - base - 1)\n"             \
    "      room = room - #e\n"                                                 \
    "      if room < 0 and #out > 0 then break end\n"                          \
    "      out[#out + 1] = e\n"                                                \
    "    end\n"                                                                \
    "    return {c, n, out}\n"                                                 \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "return {0, 0, {}}\n"

/* KEYS: conversation. ARGV: number, n, new n, "AT\n" and length of the last
 * new entry, lengths, entries with words, words, most bytes of a bucket,
 * entries of a part; then bucket and postings for each bucket. Answer: 1; 0:
 * the index or the conversation is another one by now, and nothing was added.
 * One HSET changes everything, because Redis does not undo a script.
 *
 * A bucket over its limit takes nothing more. */
#define MO_LUA_INDEX_TEXT                                                      \
    "local kc = KEYS[1]\n"                                                     \
    "local function look(c)\n"                                                 \
    "  local list = kc .. ':' .. c\n"                                          \
    "  local len = redis.call('LLEN', list)\n"                                 \
    "  local last = tonumber(redis.call('HGET', kc, 's:' .. c) or len)\n"      \
    "  return list, len, last, last - len\n"                                   \
    "end\n"                                                                    \
    "local list, len, last, base = look(ARGV[1])\n"                            \
    "local key = list .. ':find'\n"                                            \
    "local n, to = tonumber(ARGV[2]), tonumber(ARGV[3])\n"                     \
    "local part = tonumber(ARGV[10])\n"                                        \
    "local p = math.floor(n / part)\n"                                         \
    "local h = redis.call('HMGET', key, 'n', 'b', p .. ':l', 'd', 't')\n"      \
    "if tonumber(h[2] or -1) ~= base or tonumber(h[1]) > last then\n"          \
    "  redis.call('DEL', key)\n"                                               \
    "  h = {base, base, false, 0, 0}\n"                                        \
    "end\n"                                                                    \
    "local e = to <= last and redis.call('LINDEX', list, to - base - 1)\n"     \
    "if tonumber(h[1]) ~= n or not e or #e ~= tonumber(ARGV[5]) or\n"          \
    "    e:sub(1, #ARGV[4]) ~= ARGV[4] then\n"                                 \
    "  return 0\n"                                                             \
    "end\n"                                                                    \
    "local size = h[3] or ('0000'):rep(n - p * part)\n"                        \
    "local set = {'n', to, 'b', base, 'd', h[4] + ARGV[7],\n"                  \
    "  't', h[5] + ARGV[8], p .. ':l', size .. ARGV[6]}\n"                     \
    "local names = {}\n"                                                       \
    "for i = 11, #ARGV, 2 do names[#names + 1] = p .. ':' .. ARGV[i] end\n"    \
    "local old = {}\n"                                                         \
    "if #names > 0 then old = redis.call('HMGET', key, unpack(names)) end\n"   \
    "for i, name in ipairs(names) do\n"                                        \
    "  local s = old[i] or '\\n'\n"                                            \
    "  if #s < tonumber(ARGV[9]) then\n"                                       \
    "    set[#set + 1] = name\n"                                               \
    "    set[#set + 1] = s .. ARGV[10 + 2 * i]\n"                              \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "redis.call('HSET', key, unpack(set))\n"                                   \
    "local ttl = redis.call('PTTL', list)\n"                                   \
    "if ttl > 0 then redis.call('PEXPIRE', key, ttl) end\n"                    \
    "return 1\n"

/* KEYS: conversation. ARGV: conversations to look at, most hits, 1: also an
 * index that is behind, entries of a part; then bucket and word for each word.
 * Answer: {1: an index is behind, entries, words, {entries with the word...},
 * {"NUMBER SEQ WORDS TIMES TIMES..."...}}; hits are entries with all words,
 * newest first. */
#define MO_LUA_FIND_TEXT                                                       \
    MO_LUA_CONVERSATIONS                                                       \
    "local most, lax = tonumber(ARGV[2]), ARGV[3] == '1'\n"                    \
    "local part = tonumber(ARGV[4])\n"                                         \
    "local names, words, df = {}, {}, {}\n"                                    \
    "for i = 5, #ARGV, 2 do\n"                                                 \
    "  names[#names + 1] = ':' .. ARGV[i]\n"                                   \
    "  words[#words + 1] = '\\n' .. ARGV[i + 1] .. '\\t'\n"                    \
    "  df[#df + 1] = 0\n"                                                      \
    "end\n"                                                                    \
    "local docs, total, hits = 0, 0, {}\n"                                     \
    "local function postings(h)\n"                                             \
    "  local all, least = {}, 1\n"                                             \
    "  for i, word in ipairs(words) do\n"                                      \
    "    local s, times, n = h[1 + i] or '', {}, 0\n"                          \
    "    local _, at = s:find(word, 1, true)\n"                                \
    "    while at do\n"                                                        \
    "      local stop = s:find('\\n', at, true)\n"                             \
    "      for seq, x in s:sub(at + 1, stop - 1):gmatch('(%d+)x?(%d*) ') do\n" \
    "        n = n + 1\n"                                                      \
    "        times[n], times[-tonumber(seq)] = seq, x == '' and 1 or x\n"      \
    "      end\n"                                                              \
    "      _, at = s:find(word, stop, true)\n"                                 \
    "    end\n"                                                                \
    "    if n > 0 then\n"                                                      \
    "      df[i] = df[i] + n\n"                                                \
    "      all[i] = times\n"                                                   \
    "      if all[least] and n < #all[least] then least = i end\n"             \
    "    end\n"                                                                \
    "  end\n"                                                                  \
    "  return all, least\n"                                                    \
    "end\n"                                                                    \
    "local function match(c, p, h)\n"                                          \
    "  local all, least = postings(h)\n"                                       \
    "  for i = 1, #words do if not all[i] then return end end\n"               \
    "  local v = all[least]\n"                                                 \
    "  for j = #v, 1, -1 do\n"                                                 \
    "    if #hits >= most then return end\n"                                   \
    "    local seq = tonumber(v[j])\n"                                         \
    "    local at = 4 * (seq - p * part)\n"                                    \
    "    local size = tonumber(h[1]:sub(at - 3, at), 16) or 1\n"               \
    "    local hit = c .. ' ' .. v[j] .. ' ' .. size\n"                        \
    "    for i = 1, #words do\n"                                               \
    "      hit = hit and all[i][-seq] and hit .. ' ' .. all[i][-seq]\n"        \
    "    end\n"                                                                \
    "    hits[#hits + 1] = hit or nil\n"                                       \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "for c = conv, first, -1 do\n"                                             \
    "  local list, len, last, base = look(c)\n"                                \
    "  if len > 0 then\n"                                                      \
    "    local key = list .. ':find'\n"                                        \
    "    local h = redis.call('HMGET', key, 'n', 'b', 'd', 't')\n"             \
    "    if tonumber(h[2] or -1) ~= base or tonumber(h[1]) ~= last then\n"     \
    "      if not lax then return {1, 0, 0, {}, {}} end\n"                     \
    "    end\n"                                                                \
    "    if h[1] then\n"                                                       \
    "      docs, total = docs + h[3], total + h[4]\n"                          \
    "      local newest = math.floor((last - 1) / part)\n"                     \
    "      for p = newest, math.floor(base / part), -1 do\n"                   \
    "        local fields = {p .. ':l'}\n"                                     \
    "        for i, name in ipairs(names) do fields[1 + i] = p .. name end\n"  \
    "        local v = redis.call('HMGET', key, unpack(fields))\n"             \
    "        if v[1] then match(c, p, v) end\n"                                \
    "      end\n"                                                              \
    "    end\n"                                                                \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "return {0, docs, total, df, hits}\n"

#endif
