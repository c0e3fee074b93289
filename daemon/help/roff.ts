/** A manual page in roff with the man macros, as man(7) describes them; `man -l -` shows it. */
import type { HelpPage, Section } from './page.ts';

/** The page as section 1 of the manual. */
export function pageRoff(page: HelpPage, version: string): string {
  const name = page.name.replaceAll(' ', '-');
  const lines = [
    `.TH ${name.toUpperCase()} 1 "" "Qanat ${version}" "Qanat Manual"`,
    '.SH NAME',
    `${escaped(name)} \\- ${formatted(page.summary)}`,
    '.SH SYNOPSIS',
    `.B ${escaped(page.usage)}`,
    ...page.sections.flatMap(sectionLines),
  ];
  return `${lines.join('\n')}\n`;
}

function sectionLines({ title, paragraphs, entries }: Section): string[] {
  return [
    `.SH ${escaped(title.toUpperCase())}`,
    ...paragraphs.flatMap((text) => ['.PP', formatted(text)]),
    ...entries.flatMap(({ term, text }) => ['.TP', `.B ${escaped(term)}`, formatted(text)]),
  ];
}

/** Backquoted parts in bold. */
const formatted = (text: string): string => guarded(escapedInline(text).replace(/`([^`]*)`/g, '\\fB$1\\fR'));

const escaped = (text: string): string => guarded(escapedInline(text));

const escapedInline = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('"', '\\(dq')
    .replace(/[^\x20-\x7e]/gu, (one) => `\\[u${one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}]`);

/** A dot at the start of a line would make it a request. */
const guarded = (text: string): string => (text.startsWith('.') ? `\\&${text}` : text);
