/**
 * What Prometheus and Grafana are told: configuration and rules by promtool, every name and label of rules and dashboard
 * by the definitions of metrics.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { DEFINITIONS } from '../../metrics/definitions.ts';
import type { MetricDefinition } from '../../metrics/metric.ts';
import { check, DEPLOY, missing } from './command-check.ts';
import { dashboard, queries } from './dashboard-file.ts';
import { parseExpression, type Selector } from './promql.ts';

const PROMETHEUS = join(DEPLOY, 'prometheus');
/** Labels that Prometheus adds. */
const ADDED = ['instance', 'job'];

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const yaml = (name: string): unknown => parse(readFileSync(join(PROMETHEUS, name), 'utf8'));
const rules = (yaml('alerts.yml') as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);

describe('promtool', { skip: missing('promtool') }, () => {
  test('takes the configuration, the targets and the rules', () => {
    // files of secrets are not here
    const overTls = check('promtool', ['check', 'config', '--syntax-only', 'prometheus.tls.yml'], PROMETHEUS);
    assert.equal(overTls.code, 0, overTls.text);
    const { code, text } = check('promtool', ['check', 'config', 'prometheus.yml'], PROMETHEUS);
    assert.equal(code, 0, text);
    assert.match(text, new RegExp(`SUCCESS: ${rules.length} rules found`));
  });

  test('finds that every alert fires when it has to, and only then', () => {
    const { code, text } = check('promtool', ['test', 'rules', 'alerts.test.yml'], PROMETHEUS);
    assert.equal(code, 0, text);
  });

  test('takes every query of the dashboard', () => {
    const folder = mkdtempSync(join(tmpdir(), 'qanat-rules-'));
    try {
      const recorded = queries('1m').map(({ expr }, k) => ({ record: `panel:${k}`, expr }));
      const file = join(folder, 'rules.yml');
      writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules: recorded }] }));
      const { code, text } = check('promtool', ['check', 'rules', file]);
      assert.equal(code, 0, text);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

test('every alert is tested both ways and says what to do', () => {
  const { tests } = yaml('alerts.test.yml') as {
    tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[];
  };
  const cases = tests.flatMap((one) => one.alert_rule_test);
  for (const { alert, labels, annotations } of rules) {
    const own = cases.filter(({ alertname }) => alertname === alert);
    assert.ok(own.some((one) => one.exp_alerts.length > 0) && own.some((one) => one.exp_alerts.length === 0), alert);
    assert.match(labels.severity ?? '', /^(critical|warning|info)$/, alert);
    assert.ok((annotations.summary ?? '').length > 0 && (annotations.description ?? '').length > 0, alert);
  }
});

const exported = new Map<string, MetricDefinition>();
for (const definition of DEFINITIONS) {
  if (definition.kind !== 'histogram') exported.set(definition.name, definition);
  else for (const part of ['bucket', 'sum', 'count']) exported.set(`${definition.name}_${part}`, definition);
}

function labelsOf({ name }: Selector): string[] {
  const definition = exported.get(name);
  return [...ADDED, ...Object.keys(definition?.labels ?? {}), ...(name.endsWith('_bucket') ? ['le'] : [])];
}

function problemsOf(expr: string): string[] {
  const { selectors, grouping } = parseExpression(expr);
  if (selectors.length === 0) return ['names no metric'];
  const problems: string[] = [];
  for (const selector of selectors.filter(({ name }) => name !== 'up')) {
    const definition = exported.get(selector.name);
    if (definition === undefined) {
      problems.push(`${selector.name} is not defined`);
      continue;
    }
    if (definition.stability !== 'stable') problems.push(`${selector.name} may change with any version`);
    const counts = definition.kind !== 'gauge';
    const asRange = selector.rangeFunction;
    if (counts && asRange === undefined) problems.push(`${selector.name} counts, and is used without a rate`);
    if (!counts && asRange !== undefined && asRange !== 'changes') problems.push(`${selector.name} is no counter`);
    const labels = labelsOf(selector);
    for (const { label, regular, value } of selector.matchers) {
      if (!labels.includes(label)) problems.push(`${selector.name} has no label ${label}`);
      const listed = definition.labels[label];
      if (!Array.isArray(listed)) continue;
      for (const one of regular ? value.split('|') : [value]) {
        if (!listed.includes(one)) problems.push(`${selector.name} has no ${label} ${one}`);
      }
    }
  }
  for (const label of grouping) {
    if (!selectors.some((selector) => labelsOf(selector).includes(label))) problems.push(`no metric has ${label}`);
  }
  return problems;
}

test('alerts name metrics and labels that are defined', () => {
  for (const { alert, expr } of rules) assert.deepEqual(problemsOf(expr), [], alert);
});

describe('the dashboard', () => {
  test('names metrics and labels that are defined', () => {
    const all = queries('1m');
    assert.ok(all.length > 50);
    for (const { panel, expr } of all) assert.deepEqual(problemsOf(expr), [], `${panel}: ${expr}`);
    for (const { name, definition } of dashboard.templating.list.filter((one) => one.definition !== undefined)) {
      const metric = /^label_values\((\w+), instance\)$/.exec(definition!)?.[1];
      assert.ok(metric !== undefined && exported.has(metric), name);
    }
  });

  test('shows all that is stable of the stages', () => {
    const shown = new Set(queries('1m').flatMap(({ expr }) => parseExpression(expr).selectors.map(({ name }) => name)));
    const stages = DEFINITIONS.filter(
      ({ name, stability }) => /^qanat_(serve|fetch|prefetch|pool|scan|decode)_/.test(name) && stability === 'stable',
    );
    const unseen = stages.filter(({ name, kind }) => !shown.has(kind === 'histogram' ? `${name}_bucket` : name));
    assert.deepEqual(
      unseen.map(({ name }) => name),
      [],
    );
  });

  test('has panels that explain themselves, with ids of their own, and none over another', () => {
    const { panels } = dashboard;
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    const taken = new Set<string>();
    for (const { title, type, description = '', gridPos } of panels) {
      if (type !== 'row') assert.ok(description.length > 0, title);
      assert.ok(gridPos.x + gridPos.w <= 24, title);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.ok(!taken.has(`${x} ${y}`), title);
          taken.add(`${x} ${y}`);
        }
      }
    }
  });
});
