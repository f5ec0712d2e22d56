// appStyle - the colours and fonts of the page, under the names that apps (MCP Apps)
// know.

import type { McpUiStyles } from '@modelcontextprotocol/ext-apps/app-bridge';

const FROM: [keyof McpUiStyles, string][] = [
  ['--color-background-primary', '--panel'], ['--color-background-secondary', '--wash'],
  ['--color-background-tertiary', '--bg'], ['--color-background-inverse', '--ink'],
  ['--color-background-danger', '--bad-bg'], ['--color-background-warning', '--warn-bg'],
  ['--color-text-primary', '--ink'], ['--color-text-secondary', '--mute'],
  ['--color-text-tertiary', '--faint'], ['--color-text-inverse', '--bg'],
  ['--color-text-info', '--accent'], ['--color-text-danger', '--bad'],
  ['--color-text-success', '--ok'], ['--color-text-warning', '--warn'],
  ['--color-border-primary', '--line'], ['--color-border-secondary', '--line'],
  ['--color-border-danger', '--bad-line'], ['--color-border-warning', '--warn-line'],
  ['--color-ring-primary', '--accent'],
];

/** Those that we have; apps have a default for each. */
export function appStyles(): McpUiStyles {
  const css = getComputedStyle(document.documentElement);
  return {
    ...Object.fromEntries(FROM.map(([name, ours]) => [name, css.getPropertyValue(ours).trim()])),
    '--font-sans': css.fontFamily,
    '--font-mono': 'ui-monospace, "SF Mono", Menlo, Consolas, monospace',
    '--font-text-md-size': '14px',
    '--font-text-sm-size': '12.5px',
    '--border-radius-sm': '6px',
    '--border-radius-md': '10px',
    '--border-radius-lg': '12px',
    '--border-width-regular': '1px',
  } as McpUiStyles;
}
