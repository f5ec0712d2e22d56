// appHost - the host half of MCP Apps for one app: the official bridge, and what an
// app may ask for. Everything that has an effect is a callback of the owner, which
// asks the person.

import './zodWithoutEval';
import { AppBridge, PostMessageTransport, type McpUiHostContext, type McpUiStyles } from '@modelcontextprotocol/ext-apps/app-bridge';
import type { CallToolResult } from '@modelcontextprotocol/client';
import type { Content } from '../protocol';

const CONTEXT_MAX = 32 * 1024; // bytes that an app can tell the model
const MESSAGE_MAX = 16 * 1024;
const LINK_MAX = 8 * 1024;
const TEARDOWN_MS = 500;

export interface AppWishes {
  call(tool: string, args: Record<string, unknown>): Promise<Record<string, unknown>>;
  read(uri: string): Promise<Record<string, unknown>>;
  message(text: string): boolean;
  context(text: string): void;
  openLink(url: string): Promise<boolean>;
  download(files: { name: string; text?: string; blob?: string }[]): Promise<boolean>;
  resize(height: number): void;
  display(mode: string): 'inline' | 'fullscreen';
  close(): void;
  ready(): void;
}

export interface AppHostOptions {
  frame: Window;
  html: string;
  args: Record<string, unknown>;
  result: { content: Content[]; structuredContent: unknown; meta: unknown };
  context: McpUiHostContext;
  version: string;
}

/** The URL that a person may be asked about: absolute, of the web or mail. */
export function linkOf(url: string): string {
  const u = URL.canParse(url) && url.length <= LINK_MAX ? new URL(url) : null;
  return u && ['https:', 'http:', 'mailto:'].includes(u.protocol) ? u.href : '';
}

interface Piece { type: string; text?: string }
const texts = (content: readonly Piece[]): string =>
  content.flatMap((c) => (c.type === 'text' && c.text ? [c.text] : [])).join('\n');

const nameOf = (uri: string): string => uri.split(/[/?#]/).findLast(Boolean) ?? 'file';

/** Messages between windows cannot hold what a store makes reactive. */
const plain = <T>(v: T): T => (v === undefined ? v : JSON.parse(JSON.stringify(v)) as T);

export function startApp(o: AppHostOptions, wishes: AppWishes) {
  const bridge = new AppBridge(null, { name: 'mcp-orchestrator', version: o.version }, {
    openLinks: {}, downloadFile: {}, serverTools: {}, serverResources: {}, logging: {},
    updateModelContext: { text: {}, structuredContent: {} }, message: { text: {} },
  }, { hostContext: o.context });

  bridge.onsandboxready = () => void bridge.sendSandboxResourceReady({ html: o.html });
  bridge.oninitialized = () => {
    wishes.ready();
    void bridge.sendToolInput({ arguments: plain(o.args) });
    void bridge.sendToolResult({
      content: plain(o.result.content) as CallToolResult['content'],
      ...(o.result.structuredContent !== undefined && { structuredContent: o.result.structuredContent }),
      ...(o.result.meta !== undefined && { _meta: o.result.meta }),
    } as CallToolResult);
  };
  bridge.onsizechange = ({ height }) => {
    if (typeof height === 'number' && Number.isFinite(height)) wishes.resize(height);
  };
  bridge.onrequestdisplaymode = ({ mode }) => Promise.resolve({ mode: wishes.display(mode) });
  bridge.onrequestteardown = () => wishes.close();
  bridge.oncalltool = async ({ name, arguments: args }) =>
    (await wishes.call(name, args ?? {})) as unknown as CallToolResult;
  bridge.onreadresource = async ({ uri }) => (await wishes.read(uri)) as { contents: [] };
  bridge.onmessage = ({ content }) => {
    const text = texts(content as Piece[]).trim();
    const isFine = text.length > 0 && text.length <= MESSAGE_MAX && wishes.message(text);
    return Promise.resolve(isFine ? {} : { isError: true });
  };
  bridge.onupdatemodelcontext = ({ content, structuredContent }) => {
    const said = texts((content ?? []) as Piece[]);
    const all = [said, structuredContent === undefined ? '' : JSON.stringify(structuredContent)].filter(Boolean).join('\n');
    if (all.length > CONTEXT_MAX) return Promise.reject(new Error(`context has more than ${CONTEXT_MAX} characters`));
    wishes.context(all);
    return Promise.resolve({});
  };
  bridge.onopenlink = async ({ url }) => {
    const link = linkOf(url);
    return link && (await wishes.openLink(link)) ? {} : { isError: true };
  };
  bridge.ondownloadfile = async ({ contents }) => {
    const files = contents.flatMap((c) => (c.type === 'resource' ? [{
      name: nameOf(c.resource.uri),
      ...('text' in c.resource ? { text: c.resource.text } : { blob: c.resource.blob }),
    }] : []));
    return files.length && (await wishes.download(files)) ? {} : { isError: true };
  };
  bridge.onloggingmessage = () => undefined; // nobody reads an app's log

  void bridge.connect(new PostMessageTransport(o.frame, o.frame));
  return {
    change: (context: McpUiHostContext) => void bridge.setHostContext(context),
    /** Tells the app that it ends, and does not wait long for it. */
    end: () => void bridge.teardownResource({}, { timeout: TEARDOWN_MS }).catch(() => undefined)
      .finally(() => void bridge.close()),
  };
}

export type { McpUiHostContext, McpUiStyles };
