/** The dashboard as tests read it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEPLOY } from './command-check.ts';

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: ReadonlyArray<{ readonly expr: string }>;
}

export interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: ReadonlyArray<{ readonly name: string; readonly definition?: string }> };
  readonly annotations: { readonly list: ReadonlyArray<{ readonly expr: string }> };
}

export const dashboard = JSON.parse(readFileSync(join(DEPLOY, 'grafana/dashboards/qanat.json'), 'utf8')) as Dashboard;

export interface Query {
  readonly panel: string;
  readonly expr: string;
}

/** Every query, with Grafana's variables replaced: all instances, and rates over `interval`. */
export function queries(interval: string): Query[] {
  const { panels, annotations } = dashboard;
  const all = [
    ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ panel: title, expr }))),
    ...annotations.list.map(({ expr }) => ({ panel: 'annotations', expr })),
  ];
  return all.map(({ panel, expr }) => ({
    panel,
    expr: expr.replaceAll('$__rate_interval', interval).replace(/\$(server|client)\b/g, '.*'),
  }));
}
