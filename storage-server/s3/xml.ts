/** Writes XML: elements from nested lists, texts escaped. Pure. */

export type Element = readonly [name: string, content: string | number | boolean | readonly Element[]];

const NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/';

/** A document with one root, in the namespace of S3 unless it is an error. */
export function xmlDocument([name, content]: Element, namespaced = true): string {
  const attribute = namespaced ? ` xmlns="${NAMESPACE}"` : '';
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${name}${attribute}>${inner(content)}</${name}>`;
}

function inner(content: Element[1]): string {
  if (!Array.isArray(content)) return escapeText(String(content));
  return (content as readonly Element[]).map(([name, below]) => `<${name}>${inner(below)}</${name}>`).join('');
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Controls as S3 writes them: no XML 1.0 can hold some of them, which is what encoding-type=url is for. */
function escapeText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is escaped
  return text.replace(/[&<>"\u0000-\u001f\u007f\ufffe\uffff]/g, (one) => {
    return ESCAPES[one] ?? `&#x${one.charCodeAt(0).toString(16)};`;
  });
}
