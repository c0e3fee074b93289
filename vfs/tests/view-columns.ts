/** Columns of every kind that the decoded view treats in its own way, of a table with a column `i`, as SQL. */
export const VIEW_COLUMNS = `
  i::BIGINT AS required_looking,
  CASE WHEN i % 3 = 0 THEN NULL ELSE i::INTEGER END AS thirds,
  CASE WHEN i % 50 = 7 THEN i * 1.5 ELSE NULL END::DOUBLE AS rare,
  NULL::BIGINT AS nothing,
  CASE WHEN i % 5 = 0 THEN NULL ELSE i % 2 = 0 END AS truth,
  (i / 7)::FLOAT AS f,
  (i * 1.01)::DECIMAL(30, 4) AS wide_decimal,
  CASE WHEN i % 4 = 1 THEN NULL ELSE (i % 100)::DECIMAL(9, 2) END AS price,
  TIMESTAMP '2001-01-01' + INTERVAL (i) SECOND AS at,
  DATE '2001-01-01' + (i % 1000)::INTEGER AS day,
  ('00000000-0000-0000-0000-' || lpad(i::VARCHAR, 12, '0'))::UUID AS id,
  CASE WHEN i % 6 = 0 THEN NULL ELSE 'text ' || (i % 40) END AS word,
  'unlike any ' || i || repeat('x', (i % 30)::INTEGER) AS long_word,
  [i, NULL, i + 1] AS list,
  {'a': i, 'b': CASE WHEN i % 2 = 0 THEN 'b' END} AS pair`;
