// views - responses over HTTP about views of the gateway.

import { bool, list, num, object, or, record, str } from '../lib/check';
import { type Checked } from './parts';

const viewItem = object({ name: str, server: str, description: or(str, '') });
const gatewayView = object({
  name: str,
  description: or(str, ''),
  onlyServers: or(list(str), []),
  patterns: or(list(str), []),
  readOnly: bool,
  shows: or(str, 'all'), // or "search": the four meta tools
  counts: or(object({ tools: num }), null),
  servers: or(list(object({ name: str, known: bool, tools: num })), []),
  tools: or(list(object({
    name: str, server: str, tool: str, description: or(str, ''), readOnly: bool,
  })), []),
  resources: or(list(viewItem), []),
  templates: or(list(viewItem), []),
  prompts: or(list(viewItem), []),
  config: or(record, null), // its entry of the file
});
export type GatewayView = Checked<typeof gatewayView>;

const gatewayViews = object({ manage: bool, views: list(gatewayView) });
export type GatewayViews = Checked<typeof gatewayViews>;

const viewChange = object({ name: str, saved: bool, view: or(gatewayView, null) });
export type ViewChange = Checked<typeof viewChange>;

export const readGatewayView = (v: unknown): GatewayView => gatewayView(v, 'view');
export const readGatewayViews = (v: unknown): GatewayViews => gatewayViews(v, 'views');
export const readViewChange = (v: unknown): ViewChange => viewChange(v, 'change');
