/**
 * The fault table: what becomes of a read of each transport under each fault, for ever and once. Tests are made from it
 * (fault-table.test.ts), and the table in ARCHITECTURE.md too: `node fetcher/tests/fault-table.ts` prints it.
 */
import type { FetchErrorCode } from '../errors.ts';

export const TRANSPORTS = ['queue pairs', 'http', 's3', 'file'] as const;
export type Kind = (typeof TRANSPORTS)[number];

export const ROWS = {
  reset: 'connections are reset',
  truncate: 'what comes ends in the middle; a local file is cut short',
  stall: 'what comes stops coming',
  silence: 'there is no answer',
  drip: 'what comes is a byte at a time',
  garbage: 'what comes is not the protocol',
  busy: 'the server is busy: 503, SlowDown',
  'wrong-range': 'the answer is another range',
  'other-version': 'the file has been replaced',
  gone: 'the file has been deleted',
  whole: 'the answer is the whole file: 200',
  expired: 'the token or the credentials have expired',
} as const;
export type Row = keyof typeof ROWS;

/** How a read ends; `bytes` with exactly what was asked for. */
export type Outcome = 'bytes' | FetchErrorCode;

export interface Cell {
  readonly forEver: Outcome;
  /** undefined where it can't pass. */
  readonly once?: Outcome;
}

/** A connection that is made again is refused when it breaks in the handshake. */
const refused: Cell = { forEver: 'REFUSED', once: 'bytes' };
const lost: Cell = { forEver: 'LOST', once: 'bytes' };
const stalled: Cell = { forEver: 'STALLED', once: 'bytes' };
const nonsense: Cell = { forEver: 'PROTOCOL', once: 'bytes' };
const stale: Cell = { forEver: 'STALE' };

/** No cell where a transport knows no such fault. */
export const CELLS: Readonly<Record<Row, { readonly [K in Kind]?: Cell }>> = {
  reset: { 'queue pairs': refused, http: lost, s3: lost },
  truncate: { 'queue pairs': refused, http: lost, s3: lost, file: stale },
  stall: { 'queue pairs': stalled, http: stalled, s3: stalled },
  silence: { 'queue pairs': stalled, http: stalled, s3: stalled },
  drip: { 'queue pairs': stalled, http: stalled, s3: stalled },
  garbage: { 'queue pairs': nonsense, http: nonsense, s3: nonsense },
  busy: { http: { forEver: 'SERVER', once: 'bytes' }, s3: { forEver: 'SERVER', once: 'bytes' } },
  'wrong-range': { http: nonsense, s3: nonsense },
  'other-version': {
    'queue pairs': stale,
    http: { forEver: 'STALE', once: 'STALE' },
    s3: { forEver: 'STALE', once: 'STALE' },
    file: stale,
  },
  gone: { 'queue pairs': stale, http: stale, s3: stale, file: stale },
  whole: { http: { forEver: 'bytes', once: 'bytes' }, s3: { forEver: 'bytes', once: 'bytes' } },
  expired: { http: { forEver: 'DENIED', once: 'DENIED' }, s3: { forEver: 'DENIED', once: 'bytes' } },
};

export interface Case {
  readonly row: Row;
  readonly kind: Kind;
  readonly duration: 'for ever' | 'once';
  readonly outcome: Outcome;
}

export const CASES: readonly Case[] = (Object.entries(CELLS) as [Row, { readonly [K in Kind]?: Cell }][]).flatMap(
  ([row, cells]) =>
    TRANSPORTS.flatMap((kind) => {
      const cell = cells[kind];
      if (cell === undefined) return [];
      const { forEver, once } = cell;
      const always: Case = { row, kind, duration: 'for ever', outcome: forEver };
      return once === undefined ? [always] : [always, { row, kind, duration: 'once', outcome: once }];
    }),
);

/** The name of a cell's test: one for each of its outcomes. */
export function testName({ row, kind, duration, outcome }: Case): string {
  return `${kind}: ${row}, ${duration}: ${outcome}`;
}

/** As ARCHITECTURE.md has it. */
export function tableText(): string {
  const lines = (Object.keys(ROWS) as Row[]).map((row) => {
    const cells = TRANSPORTS.map((kind) => cellText(CELLS[row][kind]));
    return `| \`${row}\` | ${ROWS[row]} | ${cells.join(' | ')} |`;
  });
  return [
    `| fault | what happens | ${TRANSPORTS.join(' | ')} |`,
    `|${' --- |'.repeat(TRANSPORTS.length + 2)}`,
    ...lines,
  ].join('\n');
}

function cellText(cell: Cell | undefined): string {
  if (cell === undefined) return '—';
  const { forEver, once = forEver } = cell;
  return forEver === once ? forEver : `${forEver}; ${once}`;
}

if (process.argv[1] === import.meta.filename) console.log(tableText());
