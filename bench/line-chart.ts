/**
 * Small multiples of lines as an SVG, without a library: panels in rows and columns, each with lines over the same few
 * places on its x axis, and one legend. Text is escaped, numbers are rounded; the result is one self-contained document.
 */

export interface Line {
  readonly name: string;
  /** CSS colour. */
  readonly colour: string;
  readonly dashed?: boolean;
  /** A value for each place of the x axis; undefined leaves a gap. */
  readonly values: readonly (number | undefined)[];
}

export interface Panel {
  readonly title: string;
  /** What the y axis counts. */
  readonly unit: string;
  readonly lines: readonly Line[];
  /** The least upper end of the y axis, which begins at 0. */
  readonly top?: number;
}

export interface Chart {
  readonly title: string;
  /** What the places of the x axis mean. */
  readonly axis: string;
  readonly places: readonly string[];
  /** Rows of panels, all of the same number. */
  readonly panels: readonly (readonly Panel[])[];
}

/** Pixels. */
const PANEL = { width: 250, height: 150, left: 56, top: 34, right: 14, bottom: 44 } as const;
const HEAD = 64;
const CELL_WIDTH = PANEL.left + PANEL.width + PANEL.right;
const CELL_HEIGHT = PANEL.top + PANEL.height + PANEL.bottom;
const TICKS = 4;

/** The chart as an SVG document. */
export function lineChart(chart: Chart): string {
  const columns = Math.max(...chart.panels.map((row) => row.length));
  const width = columns * CELL_WIDTH + 20;
  const height = HEAD + chart.panels.length * CELL_HEIGHT + 10;
  const panels = chart.panels.flatMap((row, y) =>
    row.map((panel, x) => drawPanel(panel, chart, 10 + x * CELL_WIDTH, HEAD + y * CELL_HEIGHT)),
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"
 font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="11" fill="#222">
<title>${escaped(chart.title)}</title>
<rect width="${width}" height="${height}" fill="white"/>
${text(20, 22, chart.title, 'font-size="14" font-weight="bold"')}
${legend(chart)}
${panels.join('\n')}
</svg>
`;
}

/** Each name once, in the order of its first line. */
function legend({ panels }: Chart): string {
  const lines = new Map(panels.flat(1).flatMap((panel) => panel.lines.map((line) => [line.name, line] as const)));
  let x = 20;
  return [...lines.values()]
    .map((line) => {
      const sample = `<line x1="${x}" y1="42" x2="${x + 26}" y2="42" ${stroke(line)}/>`;
      const name = text(x + 32, 46, line.name);
      x += 48 + line.name.length * 6.6;
      return `${sample}${name}`;
    })
    .join('\n');
}

function drawPanel(panel: Panel, { places, axis }: Chart, atX: number, atY: number): string {
  const values = panel.lines.flatMap(({ values: all }) => all.filter((value) => value !== undefined));
  const { step, top } = scaleOf(Math.max(panel.top ?? 0, ...values));
  const left = atX + PANEL.left;
  const bottom = atY + PANEL.top + PANEL.height;
  const xOf = (place: number): number => left + ((place + 0.5) / places.length) * PANEL.width;
  const yOf = (value: number): number => bottom - (value / top) * PANEL.height;
  const parts = [
    text(left, atY + 14, panel.title, 'font-weight="bold"'),
    text(left, atY + 27, panel.unit, 'fill="#666"'),
  ];
  for (let tick = 0; tick * step <= top * 1.0001; tick++) {
    const y = round(yOf(tick * step));
    parts.push(
      `<line x1="${left}" y1="${y}" x2="${left + PANEL.width}" y2="${y}" stroke="#ddd"/>`,
      text(left - 6, y + 4, String(Number((tick * step).toPrecision(6))), 'text-anchor="end"'),
    );
  }
  for (const [place, name] of places.entries()) {
    parts.push(text(round(xOf(place)), bottom + 16, name, 'text-anchor="middle"'));
  }
  parts.push(text(round(left + PANEL.width / 2), bottom + 32, axis, 'text-anchor="middle" fill="#666"'));
  for (const line of panel.lines) {
    const points = line.values.flatMap((value, place) =>
      value === undefined ? [] : [`${round(xOf(place))},${round(yOf(value))}`],
    );
    parts.push(`<polyline fill="none" points="${points.join(' ')}" ${stroke(line)}/>`);
    if (line.dashed) continue;
    for (const point of points) {
      const [x, y] = point.split(',');
      parts.push(`<circle cx="${x}" cy="${y}" r="3" fill="${escaped(line.colour)}"/>`);
    }
  }
  return parts.join('\n');
}

/** A step of 1, 2 or 5 times a power of ten, and the first multiple of it that no value exceeds. */
export function scaleOf(most: number): { readonly step: number; readonly top: number } {
  if (!(most > 0)) return { step: 1, top: 1 };
  const power = 10 ** Math.floor(Math.log10(most / TICKS));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate * TICKS >= most * 0.999)!;
  return { step, top: Math.ceil((most * 0.999) / step) * step };
}

function stroke({ colour, dashed }: Line): string {
  return `stroke="${escaped(colour)}" stroke-width="2"${dashed ? ' stroke-dasharray="6 4"' : ''}`;
}

function text(x: number, y: number, words: string, attributes = ''): string {
  return `<text x="${x}" y="${y}" ${attributes}>${escaped(words)}</text>`;
}

const round = (value: number): number => Math.round(value * 10) / 10;

function escaped(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
