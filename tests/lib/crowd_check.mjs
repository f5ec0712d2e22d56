// The promises to a crowd while servers, stores and boxes die, checked from what
// everybody wrote down. Nothing here knows how the program works.
//
// A word is a text that is said once in the whole run: pWHO:NUMBER. Random ids are
// base64url, so none of them can hold one. log is a list of {who, tab, what, ...}:
//   sent {word}                      a message left
//   acked {word}, refused {word}     it was acknowledged, or said to be not taken
//   heard {word, how}                its sender was told the answer or the failure
//   event {name, words, turn, args}  everything that reached a tab, in order; args of
//                                    errors and of what has somebody else's words
//   decided {word, approved, ok}     a card was answered
//   call {word}, result {word, got}  a tool call of an MCP client, and its answer
//   failed {word, text}              or its error
// histories: the stored entries of each person, {role, words, calls, states};
// effects: the words that tools wrote, one a run of a tool.

const WORD = /\bp\d+:\d+\b/g;

export const wordOf = (who, n) => `p${who}:${n}`;

/** The words in any value, each once, in order. */
export const wordsOf = (value) => [...new Set((typeof value === 'string' ? value : JSON.stringify(value) ?? '').match(WORD))];

export const ownerOf = (word) => Number(/^p(\d+):/.exec(word)[1]);

export const numberOf = (word) => Number(word.split(':')[1]);

function countOf(words) {
  const counts = new Map();
  for (const w of words) counts.set(w, (counts.get(w) ?? 0) + 1);
  return (w) => counts.get(w) ?? 0;
}

/** a holds the items of b in the order in which b has them. */
function inOrder(a, b) {
  const place = new Map(b.map((w, i) => [w, i]));
  let last = -1;
  return a.every((w) => {
    const at = place.get(w) ?? -1;
    const ok = at > last;
    last = at;
    return ok;
  });
}

/** The turns of a history: {word, answers, failures, states}. */
function turnsOf(history) {
  const turns = [];
  for (const { role, words, calls, states = [] } of history) {
    if (role === 'user') turns.push({ word: words[0], answers: 0, failures: 0, states: [] });
    const turn = turns.at(-1);
    if (!turn) continue;
    turn.states.push(...states);
    if (role === 'assistant' && !calls && words.includes(turn.word)) turn.answers++;
    else if (role === 'assistant' && !calls) turn.strange = words;
    if (role === 'note') turn.failures++;
  }
  return turns;
}

function checkPerson(who, rows, history, runs, say) {
  const turns = turnsOf(history);
  const stored = turns.map((t) => t.word);
  const times = countOf(stored);
  const of = (what) => rows.filter((r) => r.what === what);
  for (const { word } of of('acked')) {
    if (times(word) !== 1) say(`${word} was acknowledged and is stored ${times(word)} times`);
    if (!of('heard').some((h) => h.word === word)) say(`${word} was acknowledged, and its sender heard nothing`);
  }
  for (const { word } of of('sent')) if (times(word) > 1) say(`${word} is stored ${times(word)} times`);
  for (const { word } of of('refused')) if (times(word)) say(`${word} was refused and is stored`);
  for (const t of turns) {
    if (!of('sent').some((s) => s.word === t.word)) say(`${t.word} is stored and was never sent`);
    if (t.strange) say(`the answer to ${t.word} speaks of ${t.strange}`);
    if (t.answers > 1) say(`${t.word} was answered ${t.answers} times`);
    if (!t.answers && !t.failures) say(`${t.word} has neither an answer nor a failure in its history`);
    if (t.states.includes('done') && runs(t.word) !== 1) say(`the call of ${t.word} is said to be done and ran ${runs(t.word)} times`);
    if (t.states.includes('rejected') && runs(t.word)) say(`the call of ${t.word} was rejected and ran`);
  }
  for (const tab of new Set(rows.map((r) => r.tab))) {
    const mine = rows.filter((r) => r.tab === tab);
    const sent = mine.filter((r) => r.what === 'sent').map((r) => r.word);
    if (!inOrder(stored.filter((w) => sent.includes(w)), [...new Set(sent)])) say(`tab ${tab} of ${who}: its messages are stored in another order`);
    const answers = mine.filter((r) => r.what === 'event' && r.name === 'agent:response').flatMap((r) => r.words);
    if (!inOrder(answers, stored)) say(`tab ${tab} of ${who}: answers twice or in another order: ${answers}`);
    const failed = new Set();
    for (const { name, turn } of mine.filter((r) => r.what === 'event' && r.turn && /^agent:(error|response)$/.test(r.name))) {
      if (failed.has(turn)) say(`tab ${tab} of ${who}: turn ${turn} failed, and then ${name} was told`);
      if (name === 'agent:error') failed.add(turn);
    }
  }
}

/** Where in a value a word stands. */
function around(value, word) {
  const text = JSON.stringify(value) ?? '';
  const at = text.indexOf(word);
  return at < 0 ? '(not kept)' : text.slice(Math.max(0, at - 120), at + 120);
}

/** Everything that should not have happened, as sentences. */
export function problemsOf({ log, histories, effects }) {
  const problems = [];
  const say = (text) => problems.push(text);
  const runs = countOf(effects);
  const people = new Map();
  for (const r of log) {
    if (!people.has(r.who)) people.set(r.who, []);
    people.get(r.who).push(r);
    for (const w of r.what === 'event' ? r.words : [])
      if (ownerOf(w) !== r.who) say(`${r.name} with ${w} came to ${r.who}: ${around(r.args, w)}`);
  }
  for (const r of log) {
    if (r.what === 'event' && r.name === 'error' && !/store: /.test(r.args)) say(`${r.who} was sent away: ${r.args}`);
    if (r.what === 'failed' && /not found/i.test(r.text)) say(`the session of ${r.who} is lost: ${r.text}`);
  }
  for (const w of new Set(effects)) if (runs(w) > 1) say(`the call of ${w} ran ${runs(w)} times`);
  const asked = new Set(log.filter((r) => ['sent', 'call'].includes(r.what)).map((r) => r.word));
  for (const w of new Set(effects)) if (!asked.has(w)) say(`a call of ${w} ran that nobody asked for`);
  const approved = new Set(log.filter((r) => r.what === 'decided' && r.approved).map((r) => r.word));
  for (const w of new Set(effects)) if (!approved.has(w)) say(`the call of ${w} ran and nobody approved it`);
  for (const r of log.filter((x) => x.what === 'result')) {
    if (r.got.length !== 1 || r.got[0] !== r.word) say(`the result of ${r.word} speaks of ${r.got}`);
    if (runs(r.word) !== 1) say(`the call of ${r.word} was answered and ran ${runs(r.word)} times`);
  }
  for (const [who, history] of Object.entries(histories)) checkPerson(Number(who), people.get(Number(who)) ?? [], history, runs, say);
  return problems;
}
