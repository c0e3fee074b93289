/**
 * The metrics and labels that a PromQL expression names, by its words: enough of the grammar for the expressions of the
 * dashboard and of the alerts. Whether they are PromQL at all is for promtool to say.
 */

export interface Selector {
  readonly name: string;
  readonly matchers: readonly Matcher[];
  /** The function that it is given to, if its values are a range. */
  readonly rangeFunction: string | undefined;
}

export interface Matcher {
  readonly label: string;
  readonly regular: boolean;
  readonly value: string;
}

export interface Expression {
  readonly selectors: readonly Selector[];
  /** Labels of `by`, `on`, `group_left` and their like. */
  readonly grouping: readonly string[];
}

const GROUPING = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
const WORDS = new Set(['and', 'or', 'unless', 'bool', 'offset', 'inf', 'nan']);
const SELECTOR = /(?:\b(\w+)\()?\b([a-z_:][\w:]*)\b(?:\{([^}]*)\})?(?!\()/gi;
const MATCHER = /(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"/g;
const RANGE_FUNCTIONS = /^(rate|irate|increase|changes|delta|deriv|resets)$/;

export function parseExpression(text: string): Expression {
  const grouping: string[] = [];
  const rest = text
    .replace(GROUPING, (_, labels: string) => {
      grouping.push(...labels.split(/[,\s]+/).filter((label) => label !== ''));
      return ' ';
    })
    .replace(/\[[^\]]*\]/g, '');
  const selectors: Selector[] = [];
  for (const [, around, name, matchers = ''] of rest.matchAll(SELECTOR)) {
    if (name === undefined || WORDS.has(name.toLowerCase()) || /^\d/.test(name)) continue;
    if (/^(sum|max|min|avg|count|topk|quantile)$/.test(name)) continue;
    selectors.push({
      name,
      matchers: [...matchers.matchAll(MATCHER)].map(([, label, operator, value]) => ({
        label: label!,
        regular: operator!.includes('~'),
        value: value!,
      })),
      rangeFunction: around !== undefined && RANGE_FUNCTIONS.test(around) ? around : undefined,
    });
  }
  return { selectors, grouping };
}
