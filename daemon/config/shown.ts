/** The effective configuration for people and programs: every value, as a file may say it, and where it comes from. */
import { alignRows, printable } from '../output/printable.ts';
import { redact } from '../secrets.ts';
import type { DaemonConfig, Origin } from './config.ts';
import { pathText } from './file.ts';
import { SETTING_NAMES, SOURCE_SETTINGS, settingOf } from './schema.ts';
import { keyOf } from './setting.ts';

interface Shown {
  readonly path: string;
  readonly text: string;
  readonly value: unknown;
  readonly origin: Origin;
}

const DEFAULT: Origin = { from: 'default', where: '' };

/** Settings first, then sources, each with the settings that it has of its own. */
function shownValues({ settings, sources, origins }: DaemonConfig): Shown[] {
  const values: Shown[] = SETTING_NAMES.map((name) => ({
    path: keyOf(name),
    text: settingOf(name).show(settings[name]),
    value: settings[name],
    origin: origins.get(keyOf(name)) ?? DEFAULT,
  }));
  for (const [name, source] of sources) {
    const path = pathText(['sources', name]);
    const location = redact(source.location);
    values.push({ path, text: location, value: location, origin: origins.get(path) ?? DEFAULT });
    for (const setting of SOURCE_SETTINGS) {
      const own = pathText(['sources', name, keyOf(setting)]);
      const origin = origins.get(own);
      if (origin === undefined) continue;
      values.push({ path: own, text: settingOf(setting).show(source[setting]), value: source[setting], origin });
    }
  }
  return values;
}

export function configText(config: DaemonConfig): string {
  const rows = shownValues(config).map(({ path, text, origin }) => [
    path,
    printable(text),
    printable(origin.where === '' ? origin.from : origin.where),
  ]);
  return alignRows(rows, new Set());
}

/** The same as plain data: sizes in bytes, times in milliseconds, addresses as host:port. */
export function configJson(config: DaemonConfig): unknown {
  const values = shownValues(config).map(({ path, text, value, origin }) => [
    path,
    { value: typeof value === 'object' ? text : value, ...origin },
  ]);
  return { valid: true, file: config.file ?? null, values: Object.fromEntries(values) };
}
