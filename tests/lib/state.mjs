// A state directory that has been in use for a long time, made in seconds:
// audited calls in the SQLite file and in the chained audit files.
import { createHash } from 'node:crypto';
import { closeSync, openSync, renameSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const WHAT = '{"kind":"call","server":"files","tool":"read_file","who":"someone",' +
  '"client":{"name":"bench","version":"1.0.0"},' +
  `"argsDigest":"${'5'.repeat(64)}","argsBytes":31,"by":"rule","outcome":"ok","ms":3,"bytes":512}`;
const FILE_MAX = 64 * 1024 * 1024;

/** Rows of the audit table, until the file has so many bytes. `file` was made
 *  by the program. */
function fillTable(file, bytes) {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000');
  const rows = Math.ceil(bytes / (WHAT.length + 75)); // 75: two indexes, and the row itself
  db.prepare('WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)' +
    ' INSERT INTO audit (session, at, doc) SELECT \'\', 1700000000000 + i, ? FROM n').run(rows, WHAT);
  db.close();
}

const padded = (n) => String(n).padStart(20, '0');

/** Chained rows (codec/chain.h) in files of 64 MiB, and the head. */
function fillFiles(dir, bytes) {
  const now = join(dir, 'audit.jsonl');
  let prev = '0'.repeat(64);
  let seq = 0;
  for (let left = bytes; left > 0; ) {
    const fd = openSync(now, 'w', 0o600);
    let size = 0;
    while (size < FILE_MAX && left > 0) {
      let text = '';
      while (text.length < 1024 * 1024) {
        const line = `{"seq":${++seq},"prev":"${prev}","at":"2026-01-01T00:00:00.000Z","what":${WHAT}`;
        prev = createHash('sha256').update(line).digest('hex');
        text += `${line},"hash":"${prev}"}\n`;
      }
      writeSync(fd, text);
      size += text.length;
      left -= text.length;
    }
    closeSync(fd);
    if (left > 0) renameSync(now, join(dir, `audit-${padded(seq)}.jsonl`));
  }
  writeFileSync(join(dir, 'audit.head'), `${padded(1)} ${padded(seq)} ${prev}\n`, { mode: 0o600 });
}

/** dir: where the program was started once and has ended. */
export function fillState(dir, file, { table, files }) {
  fillTable(join(dir, file), table);
  fillFiles(dir, files);
}
