/** A manual page as text for a terminal: headings at the margin, terms indented, what they mean below or beside them. */
import { HELP_COLUMNS_MAX, HELP_COLUMNS_MIN } from '../limits.ts';
import type { Entry, HelpPage, Section } from './page.ts';

const TERM_INDENT = 2;
const TEXT_INDENT = 10;

/** The page in lines of at most `columns` characters, where words allow it. */
export function pageText(page: HelpPage, columns: number): string {
  const width = Math.min(Math.max(columns, HELP_COLUMNS_MIN), HELP_COLUMNS_MAX);
  const parts = [
    `Usage: ${page.usage}`,
    wrapped(sentence(page.summary), 0, width),
    ...page.sections.map((section) => sectionText(section, width)),
  ];
  return `${parts.join('\n\n').replaceAll('`', '')}\n`;
}

function sectionText({ title, paragraphs, entries }: Section, width: number): string {
  const terms = entries.map(({ term }) => term.length);
  // short terms leave room for their text on the same line
  const column = Math.max(...terms) + TERM_INDENT + 2;
  const beside = column <= width * 0.4;
  const prose = paragraphs.map((text) => wrapped(text, TERM_INDENT, width));
  const list = entries.map((entry) => entryText(entry, beside ? column : TEXT_INDENT, beside, width));
  const blocks = [...prose, ...(list.length === 0 ? [] : [list.join('\n')])];
  return `${title}:\n${blocks.join('\n\n')}`;
}

function entryText({ term, text }: Entry, indent: number, beside: boolean, width: number): string {
  const lead = ' '.repeat(TERM_INDENT) + term;
  const body = wrapped(text, indent, width);
  return beside ? lead.padEnd(indent) + body.trimStart() : `${lead}\n${body}`;
}

function wrapped(text: string, indent: number, width: number): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && visible(line) + 1 + visible(word) > width - indent) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  lines.push(line);
  return lines.map((one) => ' '.repeat(indent) + one).join('\n');
}

const visible = (text: string): number => text.replaceAll('`', '').length;

const sentence = (text: string): string => (/[.)]$/.test(text) ? text : `${text}.`);
