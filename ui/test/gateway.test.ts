import { describe, expect, test } from 'vitest';
import {
  NO_FILTER, choicesOf, guessesOf, outcomeOf, outcomeText, passes, toolOf, whoOf,
} from '../src/lib/audit';
import { asApproval, clientOf, ruleOf } from '../src/lib/pendingCall';
import { bandOf, ownName, placesOf, reasonOf } from '../src/lib/routing';
import { minutesOf } from '../src/lib/stats';
import { readApprovals, readRouted, readStats } from '../src/protocol';
import { WireError } from '../src/lib/check';

const row = (what: Record<string, unknown> | null, at = 0) => ({ sessionId: 's1', at, what });
const call = (outcome: string, more = {}) =>
  ({ kind: 'call', server: 'files', tool: 'read', outcome, ms: 12, client: { name: 'it' }, who: 'c:1', ...more });

describe('rows of the audit log', () => {
  test.each([
    [call('ok'), 'ok', 'done, 12 ms'],
    [call('tool error'), 'failed', 'failed, 12 ms'],
    [call('error'), 'failed', 'failed, 12 ms'],
    [call('unknown'), 'unknown', 'outcome unknown, 12 ms'],
    [call('denied', { by: 'rule' }), 'denied', 'denied'],
    [call('cancelled'), 'cancelled', 'cancelled, 12 ms'],
    [call('nonsense'), 'other', 'call'],
    [{ kind: 'agreed', by: 'person' }, 'decided', 'decided by a person'],
    [{ kind: 'route', words: 'x', candidates: [] }, 'routed', 'routed'],
    [{ name: 'run', content: [], ms: 3 }, 'ok', 'done, 3 ms'],
    [{ name: 'run', content: [], isError: true }, 'failed', 'failed'],
    [{ name: 'run', by: 'client' }, 'decided', 'decided by the user of its client'],
    [{ managed: 'add' }, 'other', 'add'],
    [{ kind: 'access', outcome: 'refused', reason: 'token_required' }, 'denied', 'refused'],
    [{ kind: 'access', outcome: 'signed in', door: 'link' }, 'other', 'signed in'],
    [{ kind: 'config', outcome: 'confirmed', by: 'command' }, 'other', 'confirmed'],
    [null, 'other', ''],
  ])('%j', (what, outcome, text) => {
    expect(outcomeOf(what)).toBe(outcome);
    expect(outcomeText(what)).toBe(text);
  });
  test('who, which tool, what there is to choose from', () => {
    expect([whoOf(call('ok')), whoOf({ who: 'x' }), whoOf({ client: 'liar', who: 'y' }), whoOf({ peer: '::1' }), whoOf(null)]).toEqual(['it', 'x', 'y', 'This computer', '']);
    expect([toolOf({ name: 'a' }), toolOf(call('ok'))]).toEqual(['a', 'read']);
    expect(choicesOf([row(call('ok')), row(call('error')), row(null), row({ name: 'a' })], toolOf)).toEqual(['a', 'read']);
  });
  test('candidates, whatever they are', () => {
    expect(guessesOf({ candidates: [{ server: 'a', tool: 'b', confidence: 0.5 }, 7, {}] }))
      .toEqual([{ server: 'a', tool: 'b', confidence: 0.5 }, { server: '', tool: '', confidence: 0 }]);
    expect(guessesOf({ candidates: 'x' })).toEqual([]);
  });
  test.each([
    [{}, true], [{ server: 'files' }, true], [{ server: 'file' }, false], [{ tool: 'read' }, true],
    [{ tool: 'write' }, false], [{ outcome: 'ok' }, true], [{ outcome: 'failed' }, false], [{ who: 'it' }, true],
    [{ who: 'c:1' }, false], [{ words: ' FILES ' }, true], [{ words: 's1' }, true], [{ words: 'nowhere' }, false],
    [{ server: 'files', words: 'nowhere' }, false],
  ])('filtered by %j', (f, want) => {
    expect(passes(row(call('ok')), { ...NO_FILTER, ...f })).toBe(want);
  });
  test('calls of the gateway are calls of the hour', () => {
    const m = minutesOf([
      row(call('ok', { by: 'person' }), 1), row(call('denied', { by: 'rule' }), 2), row({ kind: 'agreed', by: 'person' }, 3),
    ], 30_000, 1);
    expect([m.calls, m.failed, [...m.by]]).toEqual([[2], [1], [['person', 1], ['rule', 1]]]);
  });
});

describe('what the router says', () => {
  test.each([[1, 'runs automatically'], [0.8, 'runs automatically'], [0.79, 'suggested only'], [0.4, 'suggested only'], [0.1, 'unsure']])(
    '%d', (sure, want) => expect(bandOf(sure).name).toBe(want));
  test('reasons, places, names', () => {
    expect([reasonOf('quarantined'), reasonOf('of tomorrow')]).toEqual(['changed, not accepted', 'of tomorrow']);
    expect(placesOf(['tool', 'server', 'elsewhere'])).toBe("in its name, in its server's name");
    expect([ownName({ own: '', tool: 'a' }), ownName({ own: 'b', tool: 'a' })]).toEqual(['a', 'b']);
  });
  test('answers are checked', () => {
    const hit = { server: 's', tool: 't', confidence: 0.5 };
    expect(readRouted({ query: 'q', results: [hit], ruledOut: [] }).results[0]).toMatchObject({ learnt: 0, shared: [], reason: '' });
    expect(() => readRouted({ query: 'q', results: [{ ...hit, confidence: 'much' }], ruledOut: [] })).toThrow(WireError);
    expect(() => readStats({ at: 1 })).toThrow(WireError);
  });
});

describe('a call that the gateway holds', () => {
  const pending = { id: 'i', server: 's', tool: 't', args: { a: 1 }, digest: 'd', at: 1, expiresAt: 2 };
  const [plain] = readApprovals({ approvals: [pending], changed: [] }).approvals;
  const [rich] = readApprovals({
    approvals: [{
      ...pending, definition: { title: 'T', annotations: { readOnlyHint: true } }, client: { name: 'it', version: '1' },
      rule: { by: 'operator', index: 1, server: '', tool: 'w*', remember: false },
    }],
    changed: [],
  }).approvals;

  test('is shown as a card', () => {
    expect(plain && asApproval(plain)).toMatchObject({ name: 't', callId: 'i', title: '', annotations: null, digest: 'd', expiresAt: 2, words: '' });
    expect(rich && asApproval(rich)).toMatchObject({ title: 'T', annotations: { readOnlyHint: true } });
  });
  test('says who and by which rule', () => {
    expect(plain && [clientOf(plain), ruleOf(plain)]).toEqual(['unnamed client', 'default: no rule applies']);
    expect(rich && [clientOf(rich), ruleOf(rich)]).toEqual(['it 1', 'admin rule 2 (w* of any server)']);
  });
  test('without its bytes it is none', () => {
    expect(() => readApprovals({ approvals: [{ ...pending, args: undefined }], changed: [] })).toThrow(WireError);
  });
});
