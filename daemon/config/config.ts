/**
 * The configuration of `qanat daemon` as it holds: flags over variables over the file over defaults, each value with
 * where it comes from. Also what a reload changes in a running daemon, and what it can't.
 */
import { dirname, resolve } from 'node:path';
import { formatHostPort } from '../argument.ts';
import { CommandError } from '../errors.ts';
import { isExposed } from '../exposure.ts';
import { flagOf, type OptionOrigins, type OptionValues, variableOf } from '../options.ts';
import { printable } from '../output/printable.ts';
import { redact } from '../secrets.ts';
import { type ConfigFile, type Place, type Problem, parseConfig, pathText, readConfigText } from './file.ts';
import { PROBLEMS_SHOWN_MAX } from './limits.ts';
import {
  locationProblem,
  SETTING_NAMES,
  type SettingName,
  type Settings,
  SOURCE_SETTINGS,
  type SourceSettingName,
  settingOf,
} from './schema.ts';
import { keyOf, type SettingValue } from './setting.ts';

export interface Origin {
  readonly from: 'flag' | 'variable' | 'file' | 'default';
  /** `--memory`, `QANAT_MEMORY`, `qanat.yaml:3:9`; '' for a default. */
  readonly where: string;
}

export type SourceSettings = { readonly [K in SourceSettingName]: SettingValue<K> };

export interface SourceConfig extends SourceSettings {
  readonly location: string;
  /** The folder that a relative location is relative to. */
  readonly folder: string;
}

export interface DaemonConfig {
  readonly file: string | undefined;
  readonly settings: Settings;
  readonly sources: ReadonlyMap<string, SourceConfig>;
  /** By path: `memory`, `sources.lake.location`. */
  readonly origins: ReadonlyMap<string, Origin>;
}

/** What the command line and the environment say. */
export interface Given {
  readonly options: OptionValues;
  readonly origins: OptionOrigins;
}

/** The configuration, or what is wrong with it. Throws CommandError CONFIG_FILE when its file can't be read. */
export async function resolveConfig(given: Given, path = given.options.config): Promise<DaemonConfig | Problem[]> {
  let file: ConfigFile | undefined;
  if (path !== undefined) {
    const parsed = parseConfig(await readConfigText(path), path);
    if (Array.isArray(parsed)) return parsed as Problem[];
    file = parsed as ConfigFile;
  }
  const config = combine(given, file);
  const problems = crossProblems(config, file);
  return problems.length > 0 ? problems : config;
}

/** The same for who needs a valid one. Throws CommandError CONFIG with all problems. */
export async function loadConfig(given: Given): Promise<DaemonConfig> {
  const config = await resolveConfig(given);
  if (Array.isArray(config)) throw configError(config, given.options.config ?? 'the configuration');
  return config as DaemonConfig;
}

export function configError(problems: readonly Problem[], name: string): CommandError {
  const lines = problems.slice(0, PROBLEMS_SHOWN_MAX).map((problem) => problemText(problem, name));
  if (lines.length === 1) return new CommandError('CONFIG', lines[0]!);
  const more = problems.length - lines.length;
  const details = more > 0 ? [...lines, `and ${more} more`] : lines;
  return new CommandError('CONFIG', `${name} has ${problems.length} mistakes`, { details });
}

/** `qanat.yaml:3:9: memory: "lots" is no size …` */
export function problemText({ path, message, place }: Problem, name: string): string {
  const where = place === undefined ? name : placeText(name, place);
  return printable(`${where}: ${path === '' ? '' : `${path}: `}${message}`);
}

function placeText(name: string, { line, column }: Place): string {
  return `${name}:${line}:${column}`;
}

function combine({ options, origins: given }: Given, file: ConfigFile | undefined): DaemonConfig {
  const origins = new Map<string, Origin>();
  const inFile = (...path: string[]): Origin => {
    const place = file?.placeOf(path);
    return { from: 'file', where: place === undefined ? (file?.path ?? '') : placeText(file!.path, place) };
  };
  const byOption = (name: 'source' | SettingName): Origin =>
    given[name] === 'variable' ? { from: 'variable', where: variableOf(name) } : { from: 'flag', where: flagOf(name) };
  const values = (file?.values ?? {}) as Readonly<Record<string, unknown>>;
  const settings: Partial<Record<SettingName, unknown>> = {};
  for (const name of SETTING_NAMES) {
    const key = keyOf(name);
    const [value, origin] =
      options[name] !== undefined
        ? [options[name], byOption(name)]
        : values[key] !== undefined
          ? [values[key], inFile(key)]
          : [settingOf(name).standard, { from: 'default', where: '' } as const];
    settings[name] = value;
    origins.set(key, origin);
  }
  const sources = new Map<string, SourceConfig>();
  const add = (
    name: string,
    written: Readonly<Record<string, unknown>>,
    folder: string,
    origin: (key?: string) => Origin,
  ) => {
    const own: Record<string, unknown> = {};
    for (const setting of SOURCE_SETTINGS) {
      const key = keyOf(setting);
      own[setting] = written[key] ?? settings[setting];
      if (written[key] !== undefined) origins.set(pathText(['sources', name, key]), origin(key));
    }
    sources.set(name, { ...(own as unknown as SourceSettings), location: String(written.location), folder });
    origins.set(pathText(['sources', name]), origin('location'));
  };
  const folder = file === undefined ? process.cwd() : dirname(resolve(file.path));
  for (const [name, written] of Object.entries(file?.values.sources ?? {})) {
    add(name, written as Readonly<Record<string, unknown>>, folder, (key = '') => inFile('sources', name, key));
  }
  for (const { name, location } of options.source ?? []) {
    add(name, { location }, process.cwd(), () => byOption('source'));
  }
  return { file: file?.path, settings: settings as unknown as Settings, sources, origins };
}

/** What no value says alone. */
function crossProblems({ settings, sources, origins }: DaemonConfig, file: ConfigFile | undefined): Problem[] {
  const problems: Problem[] = [];
  const tell = (path: string, message: string): void => {
    const place = origins.get(path)?.from === 'file' ? file?.placeOf(path.split('.')) : undefined;
    problems.push({ path, message, ...(place === undefined ? {} : { place }) });
  };
  for (const name of ['listen', 'metrics'] as const) {
    const address = settings[name];
    if (settings.insecureListen || address === 'none' || !isExposed(address)) continue;
    tell(
      keyOf(name),
      `${formatHostPort(address)} can be reached by other machines, and a daemon asks for no authentication; ` +
        'insecure-listen: true allows it where the network is trusted',
    );
  }
  // those of the file are checked with it
  for (const [name, { location }] of sources) {
    const problem = locationProblem(location);
    if (problem !== undefined) tell(pathText(['sources', name]), problem);
  }
  return problems;
}

export interface Change {
  readonly path: string;
  /** Shown without secrets; absent where there was none, or is none any more. */
  readonly before?: string;
  readonly after?: string;
}

export interface Reload {
  /** What holds from now on. */
  readonly config: DaemonConfig;
  readonly changed: readonly Change[];
  /** What the new file says but only a restart does. */
  readonly kept: readonly Change[];
}

/** What becomes of a running configuration when `next` is what flags, variables and file now say. */
export function planReload(running: DaemonConfig, next: DaemonConfig): Reload {
  const changed: Change[] = [];
  const kept: Change[] = [];
  const settings: Partial<Record<SettingName, unknown>> = {};
  for (const name of SETTING_NAMES) {
    const { live, show } = settingOf(name);
    const [before, after] = [show(running.settings[name]), show(next.settings[name])];
    const takes = live || before === after;
    settings[name] = (takes ? next : running).settings[name];
    if (before !== after) (live ? changed : kept).push({ path: keyOf(name), before, after });
  }
  for (const name of new Set([...running.sources.keys(), ...next.sources.keys()])) {
    const [before, after] = [running.sources.get(name), next.sources.get(name)].map((source) =>
      source === undefined ? undefined : sourceText(source),
    );
    if (before === after) continue;
    changed.push({
      path: pathText(['sources', name]),
      ...(before === undefined ? {} : { before }),
      ...(after === undefined ? {} : { after }),
    });
  }
  return { config: { ...next, settings: settings as unknown as Settings }, changed, kept };
}

/** A source in a line: its location and what its settings are. */
function sourceText(source: SourceConfig): string {
  const settings = SOURCE_SETTINGS.map((name) => `${keyOf(name)} ${settingOf(name).show(source[name])}`);
  return `${redact(source.location)} (${settings.join(', ')})`;
}
